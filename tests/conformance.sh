#!/usr/bin/env bash
# The official conformance suite against the program over HTTP, for 2025-11-25 and 2026-07-28.
#
#   tests/conformance.sh [PROGRAM]      the program is target/debug/indelible unless named
#
# It runs every scenario for servers of both revisions. Those below must fail, and the script fails where another one
# does, or where one of these passes. What cannot be installed is skipped with a line that says so. It works in a
# temporary folder.
set -euo pipefail
program=$(realpath "${1:-target/debug/indelible}")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/clients/common.sh
. "$here/clients/common.sh"

# Scenarios that must fail, and why. One that only warns counts as failed.
cat >"$folder/expected.yaml" <<'YAML'
server:
  # They call tools, prompts and resources of fixed names (test_simple_text, test_simple_prompt, test://static-text and
  # the like), which a server for a database does not have. What they are about is tested under tests/.
  - tools-call-simple-text
  - tools-call-error
  - tools-call-with-progress
  - completion-complete
  - resources-read-text
  - resources-templates-read
  - prompts-get-simple
  - prompts-get-with-args
  - json-schema-2020-12
  # The same for questions by rounds: fixed tools that ask for a name, for several things, or over several rounds.
  # tests/confirm.rs and tests/http have the one question that this server asks.
  - input-required-result-basic-elicitation
  - input-required-result-request-state
  - input-required-result-multiple-input-requests
  - input-required-result-multi-round
  - input-required-result-non-tool-request
  - input-required-result-result-type
  - input-required-result-tampered-state
  - input-required-result-missing-input-response
  - input-required-result-ignore-extra-params
  - input-required-result-capability-check
  # Five of its 28 checks need fixed tools; the others pass.
  - server-stateless
  # No tool here has a parameter that is repeated in a header (x-mcp-header).
  - http-custom-header-server-validation
  # No tool, resource or prompt here answers with anything but text.
  - tools-call-image
  - tools-call-audio
  - tools-call-embedded-resource
  - tools-call-mixed-content
  - resources-read-binary
  - prompts-get-embedded-resource
  - prompts-get-with-image
  # Not offered, and not announced: logging, sampling and roots (deprecated in 2026-07-28), subscriptions to single
  # resources, and over HTTP questions to clients of 2025-11-25, which would need sessions.
  - logging-set-level
  - tools-call-with-logging
  - tools-call-sampling
  - tools-call-elicitation
  - elicitation-sep1034-defaults
  - elicitation-sep1330-enums
  - resources-subscribe
  - resources-unsubscribe
  - input-required-result-basic-sampling
  - input-required-result-basic-list-roots
YAML
# Both look at the streams of a session, and warn where there is none.
cp "$folder/expected.yaml" "$folder/expected-2025-11-25.yaml"
cat >>"$folder/expected-2025-11-25.yaml" <<'YAML'
  - server-sse-polling
  - server-sse-multiple-streams
YAML
cp "$folder/expected.yaml" "$folder/expected-2026-07-28.yaml"

need_npm @modelcontextprotocol/conformance@0.2.0-alpha.12
suite() {
    local revision=$1
    if ! (cd "$folder" && node "$npm/node_modules/@modelcontextprotocol/conformance/dist/index.js" server \
        --url "$address" --suite all --spec-version "$revision" --expected-failures "$folder/expected-$revision.yaml" \
        -o "$folder/results") >"$folder/suite.log" 2>&1; then
        cat "$folder/suite.log"
        fail "$revision: the suite found something unexpected"
    fi
    echo "$revision: $(grep -c '^✓' <(sed -n '/=== SUMMARY ===/,$p' "$folder/suite.log")) scenarios pass, the others fail as expected"
}
serve --no-auth --db "$folder/memory.db"
for revision in 2025-11-25 2026-07-28; do
    suite "$revision"
done
stop
echo "$script: conformant"

#!/usr/bin/env bash
# The official conformance suite against the program over HTTP, for 2025-11-25 and 2026-07-28.
#
#   tests/conformance.sh [PROGRAM]      the program is target/debug/indelible unless named
#
# It runs every scenario for servers of both revisions: against the program itself, and, where it is built beside the
# program, against examples/conformance_server.rs, which has the fixed tools that many scenarios call. Scenarios below
# must fail, and the script fails where another one does, or where one of these passes. What cannot be installed is
# skipped with a line that says so. It works in a temporary folder.
set -euo pipefail
program=$(realpath "${1:-target/debug/indelible}")
fixtures=$(dirname "$program")/examples/conformance_server
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/clients/common.sh
. "$here/clients/common.sh"

# Scenarios that must fail, and why: NAME.yaml for each server. One that only warns counts as failed, and one of another
# revision does not count.
cat >"$folder/both.yaml" <<'YAML'
server:
  # Nothing here answers with anything but text.
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
  - input-required-result-capability-check
  # There is one question, whether to do this very thing, and only tools ask it. These want a name, several things,
  # several rounds, or a prompt that asks.
  - input-required-result-basic-elicitation
  - input-required-result-multiple-input-requests
  - input-required-result-multi-round
  - input-required-result-non-tool-request
  - input-required-result-ignore-extra-params
  # 5 of its 28 checks want fixed tools that ask for what is not offered, or that log; the other 23 pass.
  - server-stateless
YAML
cp "$folder/both.yaml" "$folder/fixtures.yaml"
cp "$folder/both.yaml" "$folder/program.yaml"
cat >>"$folder/program.yaml" <<'YAML'
  # A server for a database has no tools, resources and prompts of these names. The fixtures have.
  - tools-call-simple-text
  - tools-call-error
  - tools-call-with-progress
  - completion-complete
  - resources-read-text
  - resources-templates-read
  - prompts-get-simple
  - prompts-get-with-args
  - json-schema-2020-12
  - http-custom-header-server-validation
  - input-required-result-request-state
  - input-required-result-result-type
  - input-required-result-tampered-state
  - input-required-result-missing-input-response
YAML
# In 2025-11-25 both look at the streams of a session, and warn where there is none.
for name in program fixtures; do
    cp "$folder/$name.yaml" "$folder/$name-2026-07-28.yaml"
    { cat "$folder/$name.yaml"; printf '  - %s\n' server-sse-polling server-sse-multiple-streams; } >"$folder/$name-2025-11-25.yaml"
done

need_npm @modelcontextprotocol/conformance@0.2.0-alpha.12
# Runs all scenarios of a revision: suite NAME REVISION
suite() {
    local name=$1 revision=$2 passed
    if ! (cd "$folder" && node "$npm/node_modules/@modelcontextprotocol/conformance/dist/index.js" server \
        --url "$address" --suite all --spec-version "$revision" \
        --expected-failures "$folder/$name-$revision.yaml" -o "$folder/results") >"$folder/suite.log" 2>&1; then
        cat "$folder/suite.log"
        fail "$name, $revision: the suite found something unexpected"
    fi
    passed=$(sed -n '/=== SUMMARY ===/,$s/^✓ \([^:]*\):.*/\1/p' "$folder/suite.log")
    echo "$name, $revision: $(wc -w <<<"$passed") scenarios pass, the others fail as expected"
}
serve --no-auth --db "$folder/memory.db"
for revision in 2025-11-25 2026-07-28; do
    suite program "$revision"
done
stop
if [ -x "$fixtures" ]; then
    serve_by "$fixtures"
    for revision in 2025-11-25 2026-07-28; do
        suite fixtures "$revision"
    done
    stop
else
    echo "$script: skipped the fixtures, $fixtures is not built (cargo build --example conformance_server)"
fi
echo "$script: conformant"

#!/usr/bin/env bash
# Real clients against the program, over stdio and HTTP: the Inspector's command line, the TypeScript SDKs and the
# Python SDK. Each lists the tools, reads, has a statement refused and reads a resource; and on a group of primitives
# with a key for some tools, what that leaves.
#
#   tests/clients.sh [PROGRAM]      the program is target/debug/indelible unless named
#
# What cannot be installed from npm or PyPI is skipped with a line that says so. It works in a temporary folder.
set -euo pipefail
program=$(realpath "${1:-target/debug/indelible}")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/clients/common.sh
. "$here/clients/common.sh"
token=$(head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n')
export INDELIBLE_HTTP_TOKEN=$token
database=$folder/memory.db
serve --db "$database"

# Python first: it needs no Node.
python_client() {
    python3 -m venv "$folder/venv" >/dev/null 2>&1 || { echo "$script: skipped Python, there is no venv"; return; }
    if ! "$folder/venv/bin/pip" install --quiet --disable-pip-version-check 'mcp==2.3.0' >"$folder/pip.log" 2>&1; then
        echo "$script: skipped Python, pip cannot install mcp: $(tail -n 1 "$folder/pip.log")"
        return
    fi
    "$folder/venv/bin/python" "$here/clients/client.py" "$program" "$database" "$address" "$token"
}
python_client

# A group of primitives, at a key's own path, narrowed by its URL.
data=$folder/data
"$program" groups create --data "$data" team >/dev/null
"$program" primitives create --data "$data" --group team kv state >/dev/null
key=$("$program" keys create --data "$data" --group team --tools kv_get,kv_set,kv_list 2>/dev/null)
serve_group() {
    serve --profile primitives --data "$data"
    group=${address%/GROUP}/team?tools=kv_get,kv_set,kv_delete
}
if [ -x "$folder/venv/bin/python" ]; then
    serve_group
    "$folder/venv/bin/python" "$here/clients/group.py" "$group" "$key"
    serve --db "$database"
fi

need_npm @modelcontextprotocol/inspector@2.12.0 @modelcontextprotocol/sdk@1.32.2 @modelcontextprotocol/client@2.4.0
cp "$here/clients/client.mjs" "$npm/client.mjs"
node "$npm/client.mjs" "$program" "$database" "$address" "$token"
cp "$here/clients/group.mjs" "$npm/group.mjs"
serve_group
node "$npm/group.mjs" "$group" "$key"
serve --db "$database"

# inspect WORDS... EXPECTED: what the Inspector prints must hold the last word. It ends in 5 where a tool answers with
# an error.
export MCP_INSPECTOR_SECRET_STORE=memory
inspect() {
    local expected=${*: -1} output
    output=$("$npm/node_modules/.bin/mcp-inspector" --cli "${@:1:$#-1}" 2>&1) || [ $? -eq 5 ] || fail "inspector ${*:1:$#-1}: $output"
    case $output in
        *"$expected"*) ;;
        *) fail "inspector ${*:1:$#-1}: no \`$expected\` in: $output" ;;
    esac
}
for era in legacy modern; do
    # Over stdio the target is the program and its arguments, and comes last.
    over_stdio=(-- "$program" --db "$database")
    over_http=("$address" --transport http --header "Authorization: Bearer $token")
    for way in stdio http; do
        session() {
            local expected=${*: -1}
            if [ "$way" = stdio ]; then
                inspect --protocol-era "$era" "${@:1:$#-1}" "${over_stdio[@]}" "$expected"
            else
                inspect "${over_http[@]}" --protocol-era "$era" "${@:1:$#-1}" "$expected"
            fi
        }
        session --method tools/list append_event
        session --method tools/call --tool-name read_query --tool-args-json '{"query": "SELECT 40 + 2 AS answer"}' 'answer\n42'
        session --method tools/call --tool-name read_query --tool-args-json '{"query": "DELETE FROM memory_events"}' REFUSED
        session --method resources/read --uri sqlite://schema contents
        echo "Inspector, $way, $era: ok"
    done
done
stop
echo "$script: all clients are content"

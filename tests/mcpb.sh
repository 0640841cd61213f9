#!/bin/sh
# Validates a bundle with the official tool, @anthropic-ai/mcpb, if npm can install it; else says so and ends in 0.
#
#   tests/mcpb.sh [PROGRAM]      the program is target/debug/indelible unless named
#
# It works in a temporary folder and leaves nothing behind.
set -eu
program=$(realpath "${1:-target/debug/indelible}")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
if ! npm install --silent --no-fund --no-audit --prefix "$folder" @anthropic-ai/mcpb@2 > npm.log 2>&1; then
    echo "mcpb.sh: skipped, @anthropic-ai/mcpb cannot be installed: $(tail -n 1 npm.log)"
    exit 0
fi
mcpb=$folder/node_modules/.bin/mcpb
for profile in memory explorer; do
    "$program" bundle --profile "$profile" --out "$folder/$profile.mcpb"
    "$mcpb" unpack "$folder/$profile.mcpb" "$folder/$profile" > /dev/null
    "$mcpb" validate "$folder/$profile/manifest.json"
    test -x "$folder/$profile/server/indelible"
    "$folder/$profile/server/indelible" --version
done
echo "mcpb.sh: both bundles are valid"

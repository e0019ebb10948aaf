#!/usr/bin/env bash
# Writes how parameter counts change to the summary of a job, and to a comment on the pull request, which later runs
# update. Environment: PATHS, BASE, COMMENT, NUMBER, GH_TOKEN, and what GitHub sets. Argument: the Python of archspec.
set -efuo pipefail

python=$1
here=$(cd "$(dirname "$0")" && pwd)
changes=$(mktemp)

git cat-file -e "$BASE^{commit}" 2>/dev/null || git fetch --quiet --depth=1 origin "$BASE"
# shellcheck disable=SC2086 -- several paths are separated by spaces
"$python" "$here/changes.py" --base "$BASE" -- $PATHS > "$changes"
cat "$changes" >> "$GITHUB_STEP_SUMMARY"

if [ "$COMMENT" != true ] || [ -z "$NUMBER" ]; then exit 0; fi
comments="repos/$GITHUB_REPOSITORY/issues/$NUMBER/comments"
own='.[] | select(.user.type == "Bot" and (.body | startswith("<!-- archspec -->"))) | .id'
id=$(gh api --paginate "$comments" --jq "$own" | head -n 1)
if [ ! -s "$changes" ]; then
  if [ -z "$id" ]; then exit 0; fi
  printf '<!-- archspec -->\nNo parameter count changes any more.\n' > "$changes"
fi
method=POST
if [ -n "$id" ]; then
  method=PATCH
  comments="repos/$GITHUB_REPOSITORY/issues/comments/$id"
fi
gh api --method "$method" "$comments" --field "body=@$changes" --silent ||
  echo '::warning title=archspec::the token cannot write comments; the changes are in the summary of the job'

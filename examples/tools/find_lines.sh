#!/bin/sh
# find_lines.sh [-i] [--max-count N] --pattern TEXT -- FILE
set -eu

pattern='' count='' case=''
while [ $# -gt 0 ]; do
    case $1 in
        -i) case=-i ;;
        --max-count) shift; count="-m $1" ;;
        --pattern) shift; pattern=$1 ;;
        --pattern=*) pattern=${1#--pattern=} ;;
        --) shift; break ;;
        *) echo "unknown flag: $1" >&2; exit 2 ;;
    esac
    shift
done

# shellcheck disable=SC2086 # Both are flags of our own making, or nothing.
grep -n -F $case $count -e "$pattern" -- "$1" || [ $? -eq 1 ]

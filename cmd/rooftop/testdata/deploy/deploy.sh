#!/bin/sh
# Tunes a server as the last step of its deployment: what is proven better is kept,
# all else is put back, and the deployment knows how it ended by the exit code
# alone.
#
#   URL=http://gpu-7:8000 ./deploy.sh
#
# It needs a server under load. apply.sh, beside this script, restarts the server.
# EVENTS is the file for the events, one JSON object a line. Further arguments go to
# rooftop: --slo ttft_p99=500ms, --max-restarts 3.
set -u

url=${URL:?the server\'s base URL}
events=${EVENTS:-tune.jsonl}
here=$(cd "$(dirname "$0")" && pwd)

"${ROOFTOP:-rooftop}" tune --auto --json --url "$url" --apply-cmd "$here/apply.sh" \
	--max-restarts 5 --max-downtime 30m "$@" >"$events"
code=$?

# The last event says how it ended, in a sentence: with 3, which bound was reached, or
# what was tried and could not be judged.
last=$(tail -n 1 "$events" | sed -n 's/.*"type":"finished".*"reason":"\([^"]*\)".*/\1/p')
case $code in
0) echo "deploy: tuned, or nothing to tune: $last" ;;
3) echo "deploy: a recommendation is left open: $last" ;;
4) echo "deploy: nothing could be judged: $last" ;;
5) echo "deploy: no server answers at $url" ;;
*) echo "deploy: look at the server, and run 'rooftop recover' (exit code $code): $last" ;;
esac

# A server that is well and could do better, or that nobody asks anything, fails no
# deployment; one that is not as it was meant to be does.
case $code in
0 | 3 | 4) exit 0 ;;
esac
exit "$code"

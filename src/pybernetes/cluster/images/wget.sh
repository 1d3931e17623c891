#!/bin/sh
# wget by nc, for images of a machine whose own busybox dies in its wget: HTTP, with the flags that people use.
out='' quiet='' timeout=900 spider='' headers='' method=GET data='' url=''
cr=$(printf '\r')
fail() { echo "wget: $1" >&2; exit 1; }
while [ $# -gt 0 ]; do
	case $1 in
	-q | --quiet) quiet=1 ;;
	-O | --output-document) out=$2; shift ;;
	-qO) quiet=1 out=$2; shift ;;
	-qO*) quiet=1 out=${1#-qO} ;;
	-O*) out=${1#-O} ;;
	--output-document=*) out=${1#*=} ;;
	-T | --timeout) timeout=$2; shift ;;
	-T*) timeout=${1#-T} ;;
	--timeout=*) timeout=${1#*=} ;;
	-t | --tries) shift ;;
	-t* | --tries=*) ;;
	--header) headers="$headers$2$cr
"; shift ;;
	--header=*) headers="$headers${1#*=}$cr
" ;;
	--post-data) method=POST data=$2; shift ;;
	--post-data=*) method=POST data=${1#*=} ;;
	-s | --spider) spider=1 ;;
	-*) fail "unknown option $1" ;;
	*) url=$1 ;;
	esac
	shift
done
[ -n "$url" ] || fail 'no URL'
case $url in
https://*) fail 'https is not supported here' ;;
*://*) url=${url#*://} ;;
esac
host=${url%%/*}
case $url in */*) path=/${url#*/} ;; *) path=/ ;; esac
case $host in *:*) port=${host##*:} name=${host%:*} ;; *) port=80 name=$host ;; esac
if [ -z "$out" ]; then
	out=${path##*/}
	out=${out:-index.html}
fi
[ -z "$data" ] || headers="${headers}Content-Length: ${#data}$cr
Content-Type: application/x-www-form-urlencoded$cr
"
request() {
	printf '%s %s HTTP/1.0\r\nHost: %s\r\nUser-Agent: Wget\r\nConnection: close\r\n%s\r\n%s' \
		"$method" "$path" "$host" "$headers" "$data"
}
# nc ends its side of the connection with its input, and some servers then do not answer: its input stays open.
pipe=/tmp/.wget.$$
if mkfifo "$pipe" 2>/dev/null; then
	exec 3<>"$pipe"
	rm -f "$pipe"
	request >&3 &
else
	exec 3<<END
$(request)$cr
$cr
END
fi
nc -w "$timeout" "$name" "$port" <&3 3<&- | {
	IFS= read -r status || fail "can't connect to $name port $port, or it does not answer"
	status=${status%"$cr"}
	while IFS= read -r line && [ -n "${line%"$cr"}" ]; do :; done
	case $status in
	HTTP/*' 2'*) ;;
	*) fail "server returned error: $status" ;;
	esac
	[ -z "$spider" ] || exit 0
	if [ "$out" = - ]; then exec cat; fi
	cat >"$out" || exit 1
	[ -n "$quiet" ] || echo "'$out' saved" >&2
}

// Package llamacpp reads llama.cpp's own server ("llama-server") over HTTP: its metrics page, which it
// serves with --metrics, its slots (/slots) and its properties (/props). It sends only GET requests, one at
// a time, and none that changes state.
//
// The page has few numbers. Metrics that it lacks and that follow from /slots are appended to it: the
// number of slots, what they hold, tokens as they are generated, lengths of requests. Times to first
// token, queue times and end-to-end times are absent, because the server reports none.
package llamacpp

// Package llamacpp reads llama.cpp's own server ("llama-server") over HTTP: its metrics page, which it
// serves with --metrics, its slots (/slots) and its properties (/props). It sends only GET requests, one at
// a time, and none that changes state.
//
// The page has few numbers. What is missing there and follows from /slots is appended to it: the number of
// slots, what they hold, tokens as they are generated, lengths of requests. Times to first token, queue
// times and end-to-end times are nowhere: they are absent.
package llamacpp

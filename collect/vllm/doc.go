// Package vllm says how vLLM's metrics page is read, from V0 to the newest release and in every known
// spelling, and reads facts from its other endpoints. It sends only GET requests, one at a time, and none
// that changes state.
package vllm

// Package vllm reads a vLLM server from the outside: its metrics page, from V0
// to the newest release, in every spelling seen, and the few facts that its
// other endpoints tell. It only ever asks (GET), never more than one thing at a
// time, and calls no endpoint that changes state.
//
// Names and aliases come from the catalog. What a page does not have is absent,
// never zero, and old and new names of one metric are never added together.
package vllm

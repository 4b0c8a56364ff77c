// Package vllm reads a vLLM server over HTTP: its metrics page, from V0 to the newest
// release and in every known spelling, and facts from other endpoints. It sends only GET
// requests, one at a time, and none that changes state.
//
// Names and aliases come from the catalog. A value that a page lacks is absent, never
// zero. Values under old and new names of one metric are never added up.
package vllm

package main

import (
	"bytes"
	"testing"
)

func TestProgressIsSilentOnceDone(t *testing.T) {
	var stderr bytes.Buffer
	p := &progress{w: &world{stderr: &stderr}, width: 80, on: true}
	p.say("starting the server")
	p.done()
	before := stderr.String()
	p.say("stopping process 7") // hands tell it while a screen has the terminal
	if got := stderr.String(); got != before {
		t.Errorf("after done %q was written, want nothing", got[len(before):])
	}
}

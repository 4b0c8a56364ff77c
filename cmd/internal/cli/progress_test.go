package cli

import (
	"bytes"
	"testing"
)

func TestProgressIsSilentOnceDone(t *testing.T) {
	var stderr bytes.Buffer
	p := &Progress{w: &World{Stderr: &stderr}, width: 80, on: true}
	p.Show("starting the server")
	p.Done()
	before := stderr.String()
	p.Show("stopping process 7") // the applier reports it while a screen has the terminal
	if got := stderr.String(); got != before {
		t.Errorf("after done %q was written, want nothing", got[len(before):])
	}
}

package main

import (
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
)

func TestVersionDocument(t *testing.T) {
	out, errs, code := call(t, nil, "version", "--json")
	if code != cli.ExitDone {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	var got versionDocument
	probeDocument(t, out, "version.v1.schema.json", &got)
	if got.Version != cli.Version() || got.Compiled.NVML != nvmlBuilt {
		t.Errorf("%+v", got)
	}
	page, _, _ := call(t, nil, "version")
	if !strings.HasPrefix(page, "rooftop "+cli.Version()+"\n") {
		t.Errorf("a script that reads the first line gets %q", page)
	}
}

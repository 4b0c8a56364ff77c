package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/rooftop-dev/rooftop/cmd/internal/attach"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/fleetscan"
	"github.com/rooftop-dev/rooftop/engine"
)

// A server named with --url is exported from the first diagnosis on, whether or not it can be read.
func TestExportedServerIsKnownByItsURL(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
	}))
	defer server.Close()
	flags := pflag.NewFlagSet("exporter", pflag.ContinueOnError)
	given := attach.Options{Flags: flags, Env: func(string) (string, bool) { return "", false }, URL: server.URL + "/metrics"}
	var past fleetscan.Scraped
	past.Register(flags)
	source, err := exported(&given, &past)
	must(t, err)
	name := strings.TrimPrefix(server.URL, "http://")
	list, err := source(t.Context())
	if err == nil || !strings.Contains(err.Error(), "401") || len(list) != 1 || list[0].Name != name || list[0].Unread != err.Error() {
		t.Errorf("a server that refuses the request: %+v, %v", list, err)
	}
	server.Close()
	list, err = source(t.Context())
	if err != nil || len(list) != 1 || list[0].Name != name || list[0].Condition.State != engine.Down {
		t.Errorf("a server that does not answer: %+v, %v", list, err)
	}

	var usage *cli.CodedError
	for _, wrong := range []attach.Options{{URL: "ftp://x"}, {URL: server.URL, GPU: "no such GPU"}} {
		wrong.Flags, wrong.Env = flags, given.Env
		if _, err := exported(&wrong, &past); !errors.As(err, &usage) || usage.Code != cli.ExitUsage {
			t.Errorf("%s, %s: %v, want a usage error before the first diagnosis", wrong.URL, wrong.GPU, err)
		}
	}
}

package document_test

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine/fleet"
)

// everyState returns a fleet with a server in each state.
func everyState() []fleet.Server {
	var list []fleet.Server
	for _, name := range slices.Sorted(maps.Keys(states())) {
		list = append(list, fleet.Server{Name: name + ":8000", Diagnosis: *states()[name]()})
	}
	list = append(list, fleet.Unread("gone:8000", "http://prometheus:9090: unreachable: 503"))
	fleet.Rank(list)
	return list
}

// A fleet's report to send around has every column and every finding.
func TestFleetReport(t *testing.T) {
	p := fleet.Page(everyState())
	p.Foot = "Read from http://prometheus:9090."
	var b bytes.Buffer
	must(t, render.Markdown(&b, p))
	narrow := drawn(t, p, render.Options{Width: 80})
	checkWidth(t, narrow, 80)
	golden(t, "fleet", b.String()+"=== 80 cells\n"+narrow+"=== 120 cells\n"+drawn(t, p, render.Options{Width: 120}))
	var html bytes.Buffer
	must(t, render.HTML(&html, p))
	for _, want := range []string{"slots:8000", "could not be read", "uneven load", "of achievable (est)", "Read from http://prometheus:9090."} {
		if !bytes.Contains(b.Bytes(), []byte(want)) || !bytes.Contains(html.Bytes(), []byte(want)) {
			t.Errorf("no %q in Markdown, or in HTML", want)
		}
	}
}

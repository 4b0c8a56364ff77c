// Package tuning builds the pages of a tuned server: a diagnosis, a comparison before and after a change,
// a run. It returns plain values, so that screen and reports use the same words and figures.
package tuning

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

const nbsp = figure.NBSP

// Change formats a relative change with its signs: "+43 %". Unknown is shown as absent.
func Change(ratio stat.Opt) string {
	if !ratio.Finite().OK {
		return figure.Absent
	}
	return figure.ChangeSign(ratio.V)
}

// Sentence capitalizes a text, unless it begins with a name, and adds a full stop.
func Sentence(s string) string {
	s = figure.Stopped(s)
	if s == "" || s[0] < 'a' || s[0] > 'z' || strings.Contains(strings.SplitN(s, " ", 2)[0], "_") {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// JoinClauses joins clauses, leaving out empty and repeated ones.
func JoinClauses(list ...string) string {
	var parts []string
	for _, s := range list {
		if s != "" && !slices.Contains(parts, s) {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, "; ")
}

// EngineName returns the usual spelling of an inference engine, with its version.
func EngineName(t engine.Target) string {
	name := t.Engine
	if name != "" {
		name = catalog.EngineOf(name).Name
	}
	return strings.TrimSpace(name + " " + t.EngineVersion)
}

// Hardware returns the number and name of the GPUs, "CPU", or "" if neither is known.
func Hardware(f *engine.Facts) string {
	switch {
	case f.GPUName.Known && f.GPUCount.Known:
		return figure.Whole(float64(f.GPUCount.Value)) + nbsp + "×" + nbsp + f.GPUName.Value
	case f.GPUName.Known:
		return f.GPUName.Value
	case f.OnCPU():
		return "CPU"
	}
	return ""
}

// Served names a server in a few words.
func Served(t engine.Target) string {
	s := cmp.Or(t.Model, "a server")
	if name := EngineName(t); name != "" {
		s += " on " + name
	}
	if t.URL != "" {
		s += ", " + t.URL
	}
	return s
}

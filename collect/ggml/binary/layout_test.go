package binary

import "testing"

func TestOperatorsHadStepsUntilJune2024(t *testing.T) {
	for i := range knownLayouts {
		k := &knownLayouts[i]
		if got, want := (&object{}).hasSteps(&k.layout), k.since < "2024-06"; got != want {
			t.Errorf("the layout since %s: steps %v, want %v", k.since, got, want)
		}
	}
	for name, c := range map[string]struct {
		symbols []string
		want    bool
	}{
		"of 2023":                 {[]string{"ggml_get_name", "ggml_compute_forward"}, true},
		"of 2023, with a piece":   {[]string{"ggml_get_name", "ggml_compute_forward.part.0"}, true},
		"with flags":              {[]string{"ggml_get_name", "ggml_compute_forward", "ggml_set_input"}, false},
		"that shows no operators": {[]string{"ggml_get_name"}, false},
	} {
		o := &object{symbols: map[string]symbol{}}
		for _, s := range c.symbols {
			o.symbols[s] = symbol{name: s, address: 1}
		}
		l := emptyLayout()
		if got := o.hasSteps(&l); got != c.want {
			t.Errorf("a file %s, with an unknown layout: steps %v", name, got)
		}
	}
}

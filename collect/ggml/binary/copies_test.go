package binary

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// file returns a part with a path and functions.
func file(path string, functions ...string) part {
	o := &object{symbols: map[string]symbol{}}
	for _, f := range functions {
		o.symbols[f] = symbol{name: f, address: 1}
	}
	return part{image: &Image{Path: path}, object: o}
}

func TestCopiesOfGGMLAreToldApart(t *testing.T) {
	const backend, base, llama = graphSymbol, "ggml_get_name", decodeSymbol
	speech := []part{file("/speech.libs/libggml-base.so", base), file("/speech.libs/libggml-cpu.so", backend)}
	answers := file("/llama/binding.so", backend, base, llama)
	for name, c := range map[string]struct {
		parts  []part
		copies [][]string
		unused []string
	}{
		"one in one file":   {[]part{answers}, [][]string{{"/llama/binding.so"}}, nil},
		"without a backend": {[]part{file("/libggml-base.so", base), file("/libllama.so", llama)}, [][]string{{"/libggml-base.so", "/libllama.so"}}, nil},
		"as Debian keeps them": {
			[]part{file("/lib/ggml/backends0/libggml-cpu.so", backend), file("/lib/libggml-base.so", base), file("/lib/libllama.so", llama)},
			[][]string{{"/lib/ggml/backends0/libggml-cpu.so", "/lib/libggml-base.so", "/lib/libllama.so"}}, nil,
		},
		"one of several files, one of one": {
			[]part{speech[0], speech[1], answers},
			[][]string{{"/llama/binding.so"}, {"/speech.libs/libggml-cpu.so", "/speech.libs/libggml-base.so"}}, nil,
		},
		"the other way round": {
			[]part{answers, speech[1], speech[0]},
			[][]string{{"/llama/binding.so"}, {"/speech.libs/libggml-cpu.so", "/speech.libs/libggml-base.so"}}, nil,
		},
		"both of several files": {
			[]part{speech[0], file("/llama/libggml-base.so", base), file("/llama/libllama.so", llama), speech[1], file("/llama/libggml-cpu.so", backend)},
			[][]string{
				{"/llama/libggml-cpu.so", "/llama/libggml-base.so", "/llama/libllama.so"},
				{"/speech.libs/libggml-cpu.so", "/speech.libs/libggml-base.so"},
			}, nil,
		},
		"a base twice": {
			[]part{file("/a/libggml-base.so", base), file("/a/libggml-cpu.so", backend), file("/b/libggml-base.so", base)},
			[][]string{{"/a/libggml-cpu.so", "/a/libggml-base.so"}}, []string{"/b/libggml-base.so"},
		},
	} {
		paths := func(parts []part) (list []string) {
			for _, p := range parts {
				list = append(list, p.image.Path)
			}
			return list
		}
		copies, unused := copiesOf(c.parts)
		var got [][]string
		for _, one := range copies {
			got = append(got, paths(one))
		}
		if d := cmp.Diff(c.copies, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if d := cmp.Diff(c.unused, paths(unused)); d != "" {
			t.Errorf("%s: unused: %s", name, d)
		}
	}
}

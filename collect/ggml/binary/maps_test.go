package binary

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMapsAreReadByFile(t *testing.T) {
	const text = `55d0c0000000-55d0c0001000 r--p 00000000 fe:00 11                         /usr/bin/node
55d0c0001000-55d0c0003000 r-xp 00001000 fe:00 11                         /usr/bin/node
7f0c00000000-7f0c00001000 rw-p 00000000 00:00 0
7f0c00001000-7f0c00002000 r-xp 00000000 fe:00 12                         /opt/my models/libggml-base.so (deleted)
7f0c00002000-7f0c0a002000 r--s 00000000 fe:00 13                         /models/a.gguf
nonsense
7f0c00003000-7f0c00002000 r-xp 00000000 fe:00 14                         /ends/before/it/begins
7ffd00000000-7ffd00001000 r-xp 00000000 00:00 0                          [vdso]
`
	got, err := readMaps(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []mapping{
		{path: "/usr/bin/node", identity: identity{"fe:00", 11}, code: true, bytes: 0x3000, ranges: []addresses{{"55d0c0000000-55d0c0001000", false}, {"55d0c0001000-55d0c0003000", true}}},
		{path: "/opt/my models/libggml-base.so", deleted: true, identity: identity{"fe:00", 12}, code: true, bytes: 0x1000, ranges: []addresses{{"7f0c00001000-7f0c00002000", true}}},
		{path: "/models/a.gguf", identity: identity{"fe:00", 13}, bytes: 0xa000000, ranges: []addresses{{"7f0c00002000-7f0c0a002000", false}}},
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(mapping{}, identity{}, addresses{})); d != "" {
		t.Error(d)
	}
	if got := model(got); got != "/models/a.gguf" {
		t.Errorf("the model is %q", got)
	}
}

func FuzzReadMaps(f *testing.F) {
	f.Add("7f0c00001000-7f0c00002000 r-xp 00000000 fe:00 12  /opt/libggml-base.so (deleted)\n")
	f.Fuzz(func(t *testing.T, text string) {
		files, _ := readMaps(strings.NewReader(text))
		for i := range files {
			if !strings.HasPrefix(files[i].path, "/") && files[i].path != "" || len(files[i].ranges) == 0 {
				t.Errorf("%+v", files[i])
			}
		}
	})
}

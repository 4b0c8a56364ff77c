package document_test

import (
	"bytes"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine/page"
)

// subject is something with a page and a document, and the states to test both with.
type subject[T any] struct {
	states   map[string]func() T
	page     func(v T, verbose bool) *page.Page
	document func(io.Writer, T) error
	schema   string
}

// text draws the page of v and checks its width.
func (s subject[T]) text(t testing.TB, v T, o render.Options) string {
	t.Helper()
	return drawn(t, s.page(v, o.Verbose), o)
}

func drawn(t testing.TB, p *page.Page, o render.Options) string {
	t.Helper()
	var b bytes.Buffer
	must(t, render.Text(&b, p, o))
	return b.String()
}

func (s subject[T]) json(t testing.TB, v T) []byte {
	t.Helper()
	return []byte(written(t, s.document, v))
}

func written[T any](t testing.TB, write func(io.Writer, T) error, v T) string {
	t.Helper()
	var b bytes.Buffer
	must(t, write(&b, v))
	return b.String()
}

// checkGolden compares the pages of all states, 80 cells wide, with a golden file.
func (s subject[T]) checkGolden(t *testing.T, name string) {
	t.Helper()
	var all strings.Builder
	for _, state := range slices.Sorted(maps.Keys(s.states)) {
		text := s.text(t, s.states[state](), render.Options{Width: 80})
		checkWidth(t, text, 80)
		all.WriteString("=== " + state + "\n" + text)
	}
	golden(t, name, all.String())
}

// checkColour fails if colour adds anything but colour, or if there is none.
func (s subject[T]) checkColour(t *testing.T) {
	for name, state := range s.states {
		plain, colored := s.text(t, state(), render.Options{}), s.text(t, state(), render.Options{Color: true})
		if diff := cmp.Diff(plain, escapes.ReplaceAllString(colored, "")); diff != "" || plain == colored {
			t.Errorf("%s: colour changes the text, or there is none:\n%s", name, diff)
		}
	}
}

// checkSchema validates the document of each state and of additional ones.
func (s subject[T]) checkSchema(t *testing.T, more map[string]func() T) {
	compiled := schema(t, s.schema)
	for _, states := range []map[string]func() T{s.states, more} {
		for name, state := range states {
			if err := compiled.Validate(decoded(t, s.json(t, state()))); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// checkFailure fails if a write error is not reported.
func (s subject[T]) checkFailure(t *testing.T, v T) {
	for name, err := range map[string]error{"text": render.Text(failing{}, s.page(v, false), render.Options{}), "document": s.document(failing{}, v)} {
		if err == nil {
			t.Errorf("%s: a failed write is not reported", name)
		}
	}
}

// checkDrawn fails if a page is too wide or has a foreign control character, or if the document is not JSON.
func (s subject[T]) checkDrawn(t *testing.T, v T, o render.Options) {
	t.Helper()
	text := s.text(t, v, o)
	checkWidth(t, text, o.Cells())
	checkControls(t, text, o.ASCII)
	decoded(t, s.json(t, v))
}

// checkControls fails if a page has a foreign control character.
func checkControls(t *testing.T, text string, ascii bool) {
	t.Helper()
	for _, r := range text {
		if r == utf8.RuneError && ascii || r < ' ' && r != '\n' || r == 0x7f || ascii && r > 0x7e {
			t.Fatalf("%q is on the page", r)
		}
	}
}

// replacement is an error in a document that a schema must detect.
type replacement struct{ name, from, to string }

// checkRejects fails if the schema accepts a document with one of the errors.
func checkRejects(t *testing.T, name, good string, faults []replacement) {
	t.Helper()
	compiled := schema(t, name)
	for _, c := range faults {
		t.Run(c.name, func(t *testing.T) {
			wrong := strings.Replace(good, c.from, c.to, 1)
			if wrong == good {
				t.Fatalf("the document has no %s", c.from)
			}
			if compiled.Validate(decoded(t, []byte(wrong))) == nil {
				t.Error("the schema accepts it")
			}
		})
	}
}

// must ends a test that got an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

package document_test

import (
	"bytes"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

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

// must ends a test that got an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

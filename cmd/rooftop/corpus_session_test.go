package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/rooftop-dev/rooftop/cmd/internal/autopilot"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/cmd/internal/pastruns"
	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// transcript records the output of a session for the corpus.
type transcript struct {
	frames        strings.Builder
	lines, events bytes.Buffer
	followers     []autopilot.Follower
}

func newTranscript() *transcript {
	r := &transcript{}
	r.followers = []autopilot.Follower{autopilot.NewNarrator(&r.lines, render.Options{Width: 80}), document.NewEvents(&r.events)}
	return r
}

// handle writes an event as lines and as JSON.
func (r *transcript) handle(e loop.Event) {
	for _, f := range r.followers {
		f.Event(e)
	}
}

// frame adds the contents of the screen.
func (r *transcript) frame(title string, g *glass) {
	fmt.Fprintf(&r.frames, "=== %s\n%s", title, g)
}

// oddRefresh returns a screen that never draws at the same instant as a poll, because their order
// would be random.
func oddRefresh(program []tea.ProgramOption) *screenOptions {
	o := defaultScreen()
	o.Refresh += 1700 * time.Microsecond
	o.Program = program
	return &o
}

// everyView adds each view of the screen, and the help.
func (d *desk) everyView(title string) {
	d.t.Helper()
	time.Sleep(90 * time.Millisecond) // as odd
	for n, view := range []string{"Now", "Roofline", "History", "Evidence", "GPU", "Log"} {
		d.press(fmt.Sprint(n + 1))
		d.transcript.frame(title+", "+view, d.glass)
	}
	d.press("1")
}

// inCorpus returns the path of a corpus file. Call it before changing the directory.
func inCorpus(name string) string {
	return filepath.Join("..", "..", "testdata", "corpus", filepath.FromSlash(name))
}

// hold compares the frames and events of a session, and its reports, with the corpus, including
// JSON and HTML if whole is set.
func (d *desk) hold(name string, whole bool) {
	d.t.Helper()
	checkCorpus(d.t, inCorpus(name+"/frames.txt"), d.transcript.frames.String())
	checkCorpus(d.t, inCorpus(name+"/lines.txt"), d.transcript.lines.String())
	if whole {
		checkCorpus(d.t, inCorpus(name+"/events.jsonl"), d.transcript.events.String())
	}
	files := []string{"/home/ada/.local/state/rooftop/runs/20260204-190903/report.html", "/home/ada/.local/state/rooftop/runs/20260204-190903/report.json"}
	var end bytes.Buffer
	for _, o := range []render.Options{{Width: 80}, {Width: 60, ASCII: true}, {Width: 120, Color: true}} {
		fmt.Fprintf(&end, "=== %+v\n", o)
		must(d.t, autopilot.WriteRun(&end, d.last, files, o))
	}
	checkCorpus(d.t, inCorpus(name+"/end.txt"), end.String())
	reports, err := pastruns.Export(d.t.TempDir(), d.last)
	must(d.t, err)
	for _, path := range reports {
		text := readFile(d.t, path)
		if whole || filepath.Ext(path) == ".md" {
			checkCorpus(d.t, inCorpus(name+"/report"+filepath.Ext(path)), string(text))
		}
	}
}

// TestCorpusOfRecordingsOnTheScreen compares the frames of a replay on the screen.
func TestCorpusOfRecordingsOnTheScreen(t *testing.T) {
	signalsBegin()
	for _, c := range []struct {
		recording     string
		width, height int
		ascii         bool
	}{{"slots4-cpu", 80, 24, false}, {"slots4-cpu", 60, 20, true}, {"sim-kv-preempting", 120, 30, false}, {"sim-gpu-throttled", 200, 60, false}} {
		name := fmt.Sprintf("screen/%s-%dx%d.txt", c.recording, c.width, c.height)
		t.Run(name, func(t *testing.T) {
			var got string
			synctest.Test(t, func(t *testing.T) {
				got = played(t, filepath.Join("..", "..", "testdata", "recordings", c.recording+".gz"), newGlass(c.width, c.height), c.ascii)
			})
			checkCorpus(t, inCorpus(name), got)
		})
	}
}

// played returns every view of a recording at its end, and the output after it.
func played(t *testing.T, path string, g *glass, ascii bool) string {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	recording, err := session.OpenRecording(f)
	must(t, err)
	player, err := session.NewPlayer(recording, "test")
	must(t, err)
	player.Speed(maxSpeed)
	k := newKeyboard()
	d := &desk{t: t, glass: g, keys: k, transcript: newTranscript()}
	w := &cli.World{Env: func(string) (string, bool) { return "", false }, Stdout: &d.stdout, Stderr: &d.stdout}
	v := &screenView{w: w, out: &cli.Output{Color: "auto", ASCII: ascii}, options: oddRefresh(glassOptions(g, k)), playback: player}
	end := make(chan error, 1)
	go func() { end <- (&following{session: player, view: v, stderr: &d.stdout}).run(t.Context()) }()
	time.Sleep(5 * time.Second)
	synctest.Wait()
	d.everyView("at the end")
	d.press("?")
	d.transcript.frame("help", g)
	d.press("?", "q")
	<-end
	k.Unplug()
	time.Sleep(time.Minute)
	return d.transcript.frames.String() + "=== printed\n" + d.stdout.String()
}

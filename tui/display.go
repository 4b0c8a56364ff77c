package tui

import (
	"time"

	"charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/rooftop-dev/rooftop/tui/cell"
)

// display is what every screen of the program has: its looks, its size, its beat and
// its last frame, which is kept until something of it changes, because View is called
// after every message.
type display struct {
	o       Options
	keys    keyMap
	profile colorprofile.Profile
	theme   theme

	look    look
	views   viewID         // how many there are
	follows [numViews]bool // those that show their end until somebody scrolls
	w, h    int
	beat    int // tag of the ticks that count

	noticeLeft int // ticks

	changed bool
	text    string
	extent  extent
	drawn   int // frames, for tests
}

func newDisplay(o Options, k keyMap, views viewID) display {
	d := display{o: o, keys: k, profile: profileOf(o), views: views, changed: true}
	d.look.glyphs = cell.Unicode()
	if o.ASCII {
		d.look.glyphs = cell.ASCII()
	}
	d.theme = themeOf(o.Theme, d.profile)
	return d
}

func (d *display) refresh() time.Duration {
	if d.o.Refresh > 0 {
		return d.o.Refresh
	}
	return 250 * time.Millisecond
}

// tick is one beat of the display. Ticks of an older chain are of no account.
type tick struct{ beat int }

func (d *display) next() tea.Cmd {
	beat := d.beat
	return tea.Tick(d.refresh(), func(time.Time) tea.Msg { return tick{beat} })
}

// begin starts the beat and asks the terminal for its background, which not every
// terminal tells.
func (d *display) begin() tea.Cmd {
	if d.asksBackground() {
		return tea.Batch(d.next(), tea.RequestBackgroundColor)
	}
	return d.next()
}

func (d *display) asksBackground() bool { return d.o.Theme == "auto" || d.o.Theme == "" }

// feeder is where a display takes its news from, and what answers its keys.
type feeder interface {
	// pull takes what is new, and says whether the screen has to close.
	pull() (ended bool)
	press(tea.KeyPressMsg) tea.Cmd
}

// update takes one message. Nothing here waits for anything.
func (d *display) update(msg tea.Msg, from feeder) tea.Cmd {
	switch msg := msg.(type) {
	case tick:
		if msg.beat != d.beat {
			return nil
		}
		d.fade()
		if from.pull() {
			return tea.Quit
		}
		return d.next()
	case tea.WindowSizeMsg:
		d.changed = d.changed || d.w != msg.Width || d.h != msg.Height
		d.w, d.h = msg.Width, msg.Height
	case tea.BackgroundColorMsg:
		if d.asksBackground() {
			name := "light"
			if msg.IsDark() {
				name = "dark"
			}
			d.theme, d.changed = themeOf(name, d.profile), true
		}
	case tea.KeyPressMsg:
		return from.press(msg)
	case tea.PasteMsg:
		if d.look.typing {
			d.paste(msg.Content)
			d.changed = true
		}
	case tea.ResumeMsg:
		d.beat++ // what was due while the program stood still is not made up for
		d.changed = true
		return d.next()
	}
	return nil
}

// view returns the frame, drawn anew only where something of it changed.
func (d *display) view(draw func() (*cell.Canvas, extent)) tea.View {
	if d.changed && d.w > 0 && d.h > 0 {
		c, e := draw()
		d.text, d.extent, d.changed = c.Render(d.theme.paint), e, false
		d.drawn++
	}
	v := tea.NewView(d.text)
	v.AltScreen = true
	return v
}

// say puts a notice into the footer for some seconds.
func (d *display) say(r remark) {
	d.look.notice = r
	d.noticeLeft = int(noticeFor / d.refresh())
}

const noticeFor = 6 * time.Second

// fade takes a notice away when its time is over.
func (d *display) fade() {
	if d.noticeLeft > 0 {
		d.noticeLeft--
		if d.noticeLeft == 0 {
			d.look.notice, d.changed = remark{}, true
		}
	}
}

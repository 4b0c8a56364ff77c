package frame

import (
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/rooftop-dev/rooftop/tui/cell"
)

// Display is the part that all screens share: options, size, ticks, and the last frame. The frame
// is kept until something changes, because Bubble Tea calls View after every message.
type Display struct {
	Options Options
	Keys    KeyMap
	profile colorprofile.Profile
	theme   Theme

	Settings      Settings
	views         []string       // names of the views
	Follows       [maxViews]bool // views that stay at their end until the user scrolls
	Width, Height int
	Beat          int // tag of the current ticks; older ones are ignored

	NoticeLeft int // ticks until the notice disappears
	mouse      bool

	Changed bool
	Text    string
	Extent  Extent
	Drawn   int // number of frames drawn, for tests
}

// NewDisplay returns a display with the named views.
func NewDisplay(o Options, k KeyMap, views []string) Display {
	d := Display{Options: o, Keys: k, profile: profileOf(o), views: views, mouse: !o.NoMouse, Changed: true}
	d.Settings.Glyphs = cell.Unicode()
	if o.ASCII {
		d.Settings.Glyphs = cell.ASCII()
	}
	d.theme = ThemeOf(o.Theme, d.profile)
	return d
}

// Refresh returns the time between two frames: 250 ms by default.
func (d *Display) Refresh() time.Duration {
	if d.Options.Refresh > 0 {
		return d.Options.Refresh
	}
	return 250 * time.Millisecond
}

// Tick is one refresh of the display. Ticks with an outdated Beat are ignored.
type Tick struct{ Beat int }

func (d *Display) next() tea.Cmd {
	beat := d.Beat
	return tea.Tick(d.Refresh(), func(time.Time) tea.Msg { return Tick{beat} })
}

// Begin starts the ticks and, with theme "auto", asks the terminal for its background colour. Not
// every terminal answers.
func (d *Display) Begin() tea.Cmd {
	if d.asksBackground() {
		return tea.Batch(d.next(), tea.RequestBackgroundColor)
	}
	return d.next()
}

func (d *Display) asksBackground() bool { return d.Options.Theme == "auto" || d.Options.Theme == "" }

// feeder supplies a display with new data and handles its keys.
type feeder interface {
	// Pull fetches new data and reports whether the screen should close.
	Pull() (ended bool)
	// Press handles a key.
	Press(tea.KeyPressMsg) tea.Cmd
}

// Receive handles one message. It never blocks.
func (d *Display) Receive(msg tea.Msg, from feeder) tea.Cmd {
	switch msg := msg.(type) {
	case Tick:
		if msg.Beat != d.Beat {
			return nil
		}
		d.expireNotice()
		if from.Pull() {
			return tea.Quit
		}
		return d.next()
	case tea.WindowSizeMsg:
		d.Changed = d.Changed || d.Width != msg.Width || d.Height != msg.Height
		d.Width, d.Height = msg.Width, msg.Height
	case tea.BackgroundColorMsg:
		if d.asksBackground() {
			name := "light"
			if msg.IsDark() {
				name = "dark"
			}
			d.theme, d.Changed = ThemeOf(name, d.profile), true
		}
	case tea.KeyPressMsg:
		return from.Press(msg)
	case tea.MouseWheelMsg:
		d.wheel(msg)
	case tea.MouseClickMsg:
		d.click(msg)
	case tea.PasteMsg:
		if d.Settings.Typing {
			d.paste(msg.Content)
			d.Changed = true
		}
	case tea.ResumeMsg:
		d.Beat++ // drop ticks that were due while the program was suspended
		d.Changed = true
		return d.next()
	}
	return nil
}

// Draw returns the current frame. It calls draw only if something changed.
func (d *Display) Draw(draw func() (*cell.Canvas, Extent)) tea.View {
	if d.Changed && d.Width > 0 && d.Height > 0 {
		c, e := draw()
		d.Text, d.Extent, d.Changed = c.Render(d.theme.Paint), e, false
		d.Drawn++
	}
	v := tea.NewView(d.Text)
	v.AltScreen = true
	if d.mouse && d.Settings.Over != OverlayText { // the terminal selects a command that is shown to be copied
		v.MouseMode = tea.MouseModeCellMotion
	}
	return v
}

// Notify shows a notice in the footer for [NoticeFor].
func (d *Display) Notify(r Remark) {
	d.Settings.Notice = r
	d.NoticeLeft = int(NoticeFor / d.Refresh())
}

// NoticeFor is how long a notice stays.
const NoticeFor = 6 * time.Second

// expireNotice removes the notice when its time is over.
func (d *Display) expireNotice() {
	if d.NoticeLeft > 0 {
		d.NoticeLeft--
		if d.NoticeLeft == 0 {
			d.Settings.Notice, d.Changed = Remark{}, true
		}
	}
}

// Package fleet is the screen of many servers: keys, views and layout. The contents of views come from
// engine/fleet.
package fleet

import (
	"context"
	"slices"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"github.com/rooftop-dev/rooftop/engine/fleet"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// Feed supplies snapshots. Latest returns the latest one, nil before the first. It must not block, and returns
// the same pointer until there is a new one.
type Feed interface{ Latest() *fleet.Live }

// Screen is the screen of many servers, a Bubble Tea model.
type Screen struct {
	frame.Display
	keys    keyMap
	feed    Feed
	refresh func()

	latest *fleet.Live
	shown  *fleet.Live // differs from latest while the display is frozen
	set    choices
}

// New returns the screen of many servers. refresh begins a reading at once and must not block. It ignores the
// option Playback.
func New(feed Feed, refresh func(), o frame.Options) *Screen {
	o.Playback = nil
	k := boundKeys()
	return &Screen{Display: frame.NewDisplay(o, k.KeyMap, tabs()), keys: k, feed: feed, refresh: refresh}
}

// Run shows the screen until the user quits or ctx ends, and restores the terminal. It returns an error if the
// terminal fails.
func (t *Screen) Run(ctx context.Context) error { return t.Show(ctx, t) }

// Init fetches the first snapshot and starts the ticks.
func (t *Screen) Init() tea.Cmd {
	t.Pull()
	return t.Begin()
}

// Update handles one message. It never blocks.
func (t *Screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	if m, ok := msg.(tea.MouseMsg); ok && t.pointed(m) {
		t.Changed = true
		return t, nil
	}
	return t, t.Receive(msg, t)
}

// View returns the frame.
func (t *Screen) View() tea.View {
	return t.Draw(func() (*cell.Canvas, frame.Extent) {
		return drawScreen(t.shown, &t.Settings, &t.set, t.Width, t.Height)
	})
}

// Pull fetches the latest snapshot. It never closes the screen.
func (t *Screen) Pull() (ended bool) {
	s := t.feed.Latest()
	if s == nil || s == t.latest {
		return false
	}
	t.latest = s
	if !t.Settings.Frozen {
		t.shown, t.Changed = s, true
	}
	return false
}

// Press handles a key.
func (t *Screen) Press(k tea.KeyPressMsg) tea.Cmd { return t.Handle(k, t.actions, nil) }

// actions returns what the keys do. In a list the keys that scroll elsewhere move the cursor.
func (t *Screen) actions() []frame.Action {
	k := &t.keys
	list := append(t.Moves(),
		frame.OnKey(k.Detail, t.open),
		frame.Action{Binding: k.Back, Do: t.back},
		frame.OnKey(k.Freeze, t.freeze),
		frame.OnKey(k.Order, func() { t.sort(t.set.order.Next()) }),
		frame.Action{Binding: k.Group, Do: t.group},
		frame.OnKey(k.Measure, t.again),
		frame.Action{Binding: k.Copy, Do: t.copyChange}, frame.Action{Binding: k.Alone, Do: t.copyAlone},
		frame.Action{Binding: k.Quit, Do: func(tea.KeyPressMsg) tea.Cmd { return tea.Quit }},
	)
	if t.Settings.View == viewServer {
		return list
	}
	page := max(1, t.Extent.Page-1)
	for b, by := range map[*key.Binding]int{&k.Up: -1, &k.Down: 1, &k.PageUp: -page, &k.PageDown: page, &k.Top: -frame.ToEnd, &k.Bottom: frame.ToEnd} {
		i := slices.IndexFunc(list, func(a frame.Action) bool { return a.Binding.Help() == b.Help() })
		list[i] = frame.OnKey(*b, func() { t.move(by) })
	}
	return list
}

// now returns the view of what is shown, with the rows of its list.
func (t *Screen) now() *view {
	l := t.shown
	if l == nil {
		l = &fleet.Live{}
	}
	return newView(l, &t.Settings, &t.set)
}

// move moves the cursor of a list by rows, or says why it cannot.
func (t *Screen) move(by int) {
	v := t.now()
	at, n := v.cursor(), v.rows()
	to := min(max(at+by, 0), n-1)
	switch {
	case n == 0:
		t.say(cell.Warn, "There is no row.")
	case to == at && by < 0:
		t.say(cell.Warn, "This is the first row.")
	case to == at:
		t.say(cell.Warn, "This is the last row.")
	default:
		t.set.at[t.Settings.View] = cursor{true, v.name(to), to}
	}
	// Stay where the list was drawn, as far as the cursor is visible there.
	t.Settings.Scroll[t.Settings.View] = t.Extent.First
}

func (t *Screen) say(token cell.Token, text string) {
	t.Notify(frame.Remark{Token: token, Text: text})
}

// pointed handles the mouse in a list: the wheel moves the cursor, a click puts it on a row, and a click on the
// row under the cursor opens that. It reports whether the message was for the list.
func (t *Screen) pointed(m tea.MouseMsg) bool {
	u := &t.Settings
	line := m.Mouse().Y - t.Extent.Top
	if u.View == viewServer || u.Over != frame.OverlayNone || u.Typing || u.Palette != nil || t.shown == nil || line < 0 || line >= t.Extent.Height {
		return false
	}
	switch m := m.(type) {
	case tea.MouseWheelMsg:
		const wheel = 3
		if by := map[tea.MouseButton]int{tea.MouseWheelUp: -wheel, tea.MouseWheelDown: wheel}[m.Button]; by != 0 {
			t.Notify(frame.Remark{})
			t.move(by)
		}
		return true
	case tea.MouseClickMsg:
		v := t.now()
		row := v.place(t.Extent.Height).row(line, t.Extent.First)
		if m.Button != tea.MouseLeft || row < 0 || row >= v.rows() {
			return false
		}
		t.Notify(frame.Remark{})
		if row == v.cursor() {
			t.open()
		} else {
			t.move(row - v.cursor())
		}
		return true
	}
	return false
}

// open opens what the cursor is on: of a group its servers, of a server its page.
func (t *Screen) open() {
	v := t.now()
	switch {
	case t.Settings.View == viewServer:
		t.say(cell.Warn, "This is the server's page; esc goes back to the list.")
	case v.rows() == 0:
		t.say(cell.Warn, "There is no row to open.")
	case t.Settings.View == viewGroups:
		t.set.within = &within{by: t.set.by, name: v.name(v.cursor())}
		t.show(viewServers, "")
		t.set.at[viewServers] = cursor{}
		t.Settings.Scroll[viewServers] = 0
	default:
		t.set.at[viewServers] = cursor{true, v.name(v.cursor()), v.cursor()}
		t.set.filter = t.Settings.Filter
		t.show(viewServer, "")
		t.Settings.Scroll[viewServer] = 0
	}
}

// show changes the view, with a filter.
func (t *Screen) show(v frame.ViewID, filter string) {
	t.Settings.View, t.Settings.Filter = v, filter
}

// back closes the first of these that is open: a filter, the page of a server, a group, the groups,
// a frozen display.
func (t *Screen) back(k tea.KeyPressMsg) tea.Cmd {
	u := &t.Settings
	switch {
	case u.Filter != "":
		u.Filter = ""
	case u.View == viewServer:
		t.show(viewServers, t.set.filter)
	case u.View == viewServers && t.set.within != nil:
		t.set.within = nil
		t.show(viewGroups, "")
	case u.View == viewGroups:
		t.show(viewServers, "")
	case u.Frozen:
		t.freeze()
	default:
		t.say(cell.Warn, k.String()+": there is nothing to go back to")
	}
	return nil
}

func (t *Screen) freeze() {
	t.Settings.Frozen = !t.Settings.Frozen
	if !t.Settings.Frozen {
		t.shown = t.latest
	}
}

// sort changes the order of the servers. From another view it only shows them.
func (t *Screen) sort(o fleet.Order) {
	if t.Settings.View == viewServers {
		t.set.order = o
	}
	t.show(viewServers, t.Settings.Filter)
	t.Settings.Scroll[viewServers], t.set.at[viewServers] = 0, cursor{}
}

// group shows the groups, or groups by the next property. On the page of a server g goes to the
// top, as elsewhere.
func (t *Screen) group(k tea.KeyPressMsg) tea.Cmd {
	switch {
	case t.Settings.View == viewServer && frame.Pressed(k, t.keys.Group):
		t.Settings.Scroll[viewServer] = 0
		return nil
	case t.Settings.View == viewGroups:
		t.set.by = (t.set.by + 1) % fleet.NumBys
		t.set.at[viewGroups] = cursor{}
	}
	t.set.within = nil
	t.show(viewGroups, "")
	return nil
}

func (t *Screen) again() {
	switch {
	case t.refresh == nil:
		t.say(cell.Warn, t.keys.Measure.Help().Key+": this list cannot be read again.")
	case t.latest != nil && t.latest.Reading:
		t.say(cell.Warn, t.keys.Measure.Help().Key+": a reading is already in progress.")
	default:
		t.refresh()
		t.say(cell.OK, "Reading again …")
	}
}

// copyChange copies the recommended command of the server under the cursor, and shows it.
func (t *Screen) copyChange(tea.KeyPressMsg) tea.Cmd {
	s := t.now().selected()
	switch {
	case s == nil:
		t.say(cell.Warn, "There is no server under the cursor.")
	case !s.Changes():
		t.say(cell.Warn, "No flag of "+s.Name+" needs a change.")
	case s.Recommendation.Launch != "":
		return t.copied(s, s.Recommendation.Launch)
	default:
		return t.copied(s, s.Recommendation.Command)
	}
	return nil
}

// copyAlone copies the command that shows the server under the cursor alone.
func (t *Screen) copyAlone(tea.KeyPressMsg) tea.Cmd {
	switch s := t.now().selected(); {
	case s == nil:
		t.say(cell.Warn, "There is no server under the cursor.")
	case s.Command == "":
		t.say(cell.Warn, "There is no command for "+s.Name+" alone.")
	default:
		return t.copied(s, s.Command)
	}
	return nil
}

// copied copies a text to the clipboard, and also shows it: not every terminal accepts clipboard data.
func (t *Screen) copied(s *fleet.Server, text string) tea.Cmd {
	t.Settings.Ask = frame.Dialog{Title: "Copied, if the terminal allows it", Lines: frame.Remarks{
		{Token: cell.Accent, Text: text}, {Token: cell.Muted, Text: "For " + s.Name + ". rooftop changes nothing from this list."},
	}}
	t.Open(frame.OverlayText)
	return tea.SetClipboard(text)
}

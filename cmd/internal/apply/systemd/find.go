package systemd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// New returns the unit that starts a server. process is the launch of its process mainPID, with command
// line, environment and config file. It changes nothing. The error is a sentence about why rooftop must
// not restart the unit.
func New(ctx context.Context, name string, uid int, process *launcher.Launch, mainPID int) (*Unit, error) {
	switch euid := os.Geteuid(); {
	case uid >= 0 && euid != uid:
		return nil, fmt.Errorf("%s is a service of user %d: run rooftop as that user", name, uid)
	case uid < 0 && euid != 0:
		return nil, fmt.Errorf("%s is a service of the system: run rooftop with sudo", name)
	}
	u := &Unit{unit: &launcher.Unit{Name: name, UID: uid}}
	if err := u.learn(ctx, process, mainPID); err != nil {
		u.Close()
		return nil, err
	}
	return u, nil
}

// learn reads the unit and determines the kept launch: with the command line as the unit has it, or that
// of the process where variables stand in it.
func (u *Unit) learn(ctx context.Context, process *launcher.Launch, mainPID int) error {
	conn, err := u.connect(ctx)
	if err != nil {
		return err
	}
	asked, cancel := limited(ctx, answerWithin)
	defer cancel()
	defer context.AfterFunc(asked, conn.Close)() // a call of the library takes no context
	unit, err := conn.GetAllPropertiesContext(asked, u.Name())
	if err != nil {
		return fmt.Errorf("systemd does not describe %s: %w", u.Name(), err)
	}
	if err := u.changeable(unit, mainPID); err != nil {
		return err
	}
	u.unit.Fragment, _ = unit["FragmentPath"].(string)
	folders, err := conn.GetManagerProperty("UnitPath")
	if err != nil {
		return fmt.Errorf("systemd does not say where its files are: %w", err)
	}
	if err := u.place(folders); err != nil {
		return err
	}
	start, err := u.execStart(ctx, conn)
	if err != nil {
		return err
	}
	u.unit.Prefix = start.prefix
	kept := *process
	kept.Unit = u.unit
	argv, expanded := start.expanded()
	u.spelled = !expanded
	switch {
	case expanded:
		kept.Argv = argv
	case !filepath.IsAbs(kept.Argv[0]):
		return fmt.Errorf("the command line of %s has variables, and its process was started as %q, which is no absolute path", u.Name(), kept.Argv[0])
	}
	if _, err := kept.Config(); err != nil {
		return fmt.Errorf("%s starts %s, whose arguments are not those of an inference server that rooftop knows (%w)", u.Name(), launch.Quote(start.argv[0]), err)
	}
	u.kept = &kept
	return nil
}

// changeable returns why a unit with these properties must not be changed or restarted; nil if it may be.
func (u *Unit) changeable(unit map[string]any, mainPID int) error {
	text := func(name string) string { s, _ := unit[name].(string); return s }
	is := func(name string) bool { b, _ := unit[name].(bool); return b }
	pid, _ := unit["MainPID"].(uint32)
	switch {
	case text("LoadState") != "loaded":
		return fmt.Errorf("the file of %s is gone (%s)", u.Name(), text("LoadState"))
	case is("Transient"):
		return fmt.Errorf("%s was made by systemd-run and is gone when its process ends", u.Name())
	case is("NeedDaemonReload"):
		return fmt.Errorf("the files of %s were changed since systemd read them, so that a restart would change more than one setting: run systemctl daemon-reload and %s first", u.Name(), launch.Line("systemctl", "restart", u.Name()))
	case is("RefuseManualStop") || is("RefuseManualStart"):
		return fmt.Errorf("%s may not be restarted by hand (RefuseManualStop= or RefuseManualStart=)", u.Name())
	case text("Type") == "oneshot":
		return fmt.Errorf("%s is of Type=oneshot, which is not for servers", u.Name())
	case int(pid) != mainPID:
		return fmt.Errorf("the main process of %s is %d, and the server was launched as process %d", u.Name(), pid, mainPID)
	}
	return nil
}

// place determines where drop-in files go, from the folders that systemd reads.
func (u *Unit) place(folders string) error {
	what := "system"
	if u.unit.UID >= 0 {
		what = "user"
	}
	lasting, volatile := "", ""
	for _, dir := range strings.FieldsFunc(folders, func(r rune) bool { return strings.ContainsRune(`[]", `, r) }) {
		switch filepath.Base(dir) {
		case what:
			if lasting == "" {
				lasting = dir
			}
		case "transient":
			volatile = filepath.Join(filepath.Dir(dir), what)
		}
	}
	if lasting == "" || volatile == "" {
		return fmt.Errorf("systemd reads units from %s, and rooftop needs a folder %q and one beside \"transient\" among them", folders, what)
	}
	dir := u.Name() + ".d"
	u.unit.Kept, u.unit.Trial = filepath.Join(lasting, dir, keptFile), filepath.Join(volatile, dir, trialFile)
	if _, err := os.Stat(u.unit.Trial); err == nil {
		return errors.New("a change on trial stands in " + u.unit.Trial + ": 'rooftop recover' puts the server back")
	}
	return nil
}

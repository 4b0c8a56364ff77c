package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/apply/manager"
	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/collect/proc"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// Labels of containers that Docker Compose makes.
const (
	projectLabel   = "com.docker.compose.project"
	serviceLabel   = "com.docker.compose.service"
	filesLabel     = "com.docker.compose.project.config_files"
	directoryLabel = "com.docker.compose.project.working_dir"
	envFileLabel   = "com.docker.compose.project.environment_file"
	hashLabel      = "com.docker.compose.config-hash"
	oneOffLabel    = "com.docker.compose.oneoff"
)

// service is a container that a service of Docker Compose makes: a manager.Manager. A change edits command: of
// the service in its Compose file and has Compose make the container again; what is kept stays in the file. While
// a change is on trial the file as it was has a second name beside it.
type service struct {
	*Container
	compose *launcher.Compose
	// wrote is the text that this rooftop wrote last, nil before.
	wrote []byte
	// run runs a program in an environment, nil for rooftop's own, with a text on its standard input, and returns
	// what it prints.
	run func(ctx context.Context, env, argv []string, stdin []byte) ([]byte, error)
}

// composeMajor is the first major version of Compose whose project can be read from the labels of a container.
const composeMajor = 2

// find reads which service makes the container. It changes nothing. The error is a sentence about why rooftop must
// not change the service.
func (s *service) find(ctx context.Context) error {
	c, labels := s.Container, s.was.Config.Labels
	command, err := s.installed(ctx)
	if err != nil {
		return fmt.Errorf("%w: set the flag in command: of the service %s in %s and run %s", err, labels[serviceLabel], labels[filesLabel], upCommand(labels[serviceLabel]))
	}
	if labels[oneOffLabel] == "True" {
		return fmt.Errorf("the container %s was made by docker compose run: start the service with %s", c.Name(), upCommand(labels[serviceLabel]))
	}
	command = append(command, "--project-name", labels[projectLabel], "--project-directory", labels[directoryLabel])
	for _, file := range list(labels[envFileLabel]) {
		command = append(command, "--env-file", file)
	}
	s.compose = &launcher.Compose{Command: command, Files: list(labels[filesLabel]), Service: labels[serviceLabel], Entrypoint: c.was.Config.Entrypoint}
	c.known.Compose = s.compose
	s.compose.Env, _ = s.split(os.Environ())
	for _, file := range slices.Backward(s.compose.Files) {
		read, err := launcher.ReadFile(file)
		if err != nil {
			return fmt.Errorf("the Compose file of the container %s cannot be read: %w", c.Name(), err)
		}
		command, err := commandOf(read.Data, s.compose.Service)
		if err != nil {
			return fmt.Errorf("the Compose file %s cannot be read: %w", file, err)
		}
		if command == nil {
			continue
		}
		if s.compose.Path, err = filepath.EvalSymlinks(file); err != nil {
			return err
		}
		break
	}
	if s.compose.Path == "" {
		return fmt.Errorf("%s does not set command: of the service %s: write the server's arguments there", strings.Join(s.compose.Files, ", "), s.compose.Service)
	}
	if _, err := os.Lstat(s.aside()); err == nil {
		return fmt.Errorf("a change to %s is on trial, and the file before it is %s: 'rooftop recover' puts it back", s.compose.Path, s.aside())
	}
	kept, err := s.keptFile()
	if err == nil {
		err = kept.Replaceable()
	}
	if err != nil {
		return fmt.Errorf("the Compose file cannot be replaced: %w", err)
	}
	if image := c.image(ctx); image != c.was.Config.Image {
		return fmt.Errorf("the image %s is another one now than that of the container %s, so that a restart would change more than one setting: run %s first", c.was.Config.Image, c.Name(), s.upCommand())
	}
	said, err := s.call(ctx, nil, "config", "--hash", s.compose.Service)
	if err != nil {
		return err
	}
	if _, hash, _ := strings.Cut(strings.TrimSpace(string(said)), " "); hash != labels[hashLabel] {
		return fmt.Errorf("the container %s differs from the service %s of %s, because the file or a variable that it uses has changed, so that a restart would change more than one setting: run %s first", c.Name(), s.compose.Service, s.compose.Path, s.upCommand())
	}
	return nil
}

// installed returns the command of an installed Compose.
func (s *service) installed(ctx context.Context) ([]string, error) {
	found := ""
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	for _, command := range [][]string{{"docker", "compose"}, {"docker-compose"}} {
		said, err := s.run(ctx, nil, append(slices.Clone(command), "version", "--short"), nil)
		if err != nil {
			continue
		}
		version := strings.TrimPrefix(strings.TrimSpace(string(said)), "v")
		major, _, _ := strings.Cut(version, ".")
		if n, err := strconv.Atoi(major); err == nil && n < composeMajor { // one that someone built has no number
			found = version
			continue
		}
		return command, nil
	}
	if found != "" {
		return nil, fmt.Errorf("the container is made by Docker Compose, of which rooftop needs version %d and finds %s", composeMajor, found)
	}
	return nil, errors.New("the container is made by Docker Compose, and there is no docker compose here")
}

// list splits a label that has several values.
func list(label string) []string {
	return slices.DeleteFunc(strings.Split(label, ","), func(s string) bool { return s == "" })
}

// variable matches what may be the name of a variable in a Compose file: in ${NAME:-4}, and alone under environment:.
var variable = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)

// split returns the variables of an environment on which the project may depend, and the others.
func (s *service) split(environ []string) (project, others []string) {
	named := map[string]bool{}
	for _, file := range s.compose.Files {
		read, _ := launcher.ReadFile(file) // Compose says why it cannot be read
		for _, name := range variable.FindAllString(string(read.Data), -1) {
			named[name] = true
		}
	}
	project = []string{}
	for _, one := range environ {
		name, _, _ := strings.Cut(one, "=")
		if named[name] || strings.HasPrefix(name, "COMPOSE_") || strings.HasPrefix(name, "DOCKER_") {
			project = append(project, one)
		} else {
			others = append(others, one)
		}
	}
	return project, others
}

// environ returns the environment for Compose: that of the run in which the change was made, as far as the project
// depends on it. Another shell would make another container.
func (s *service) environ() []string {
	if s.compose.Env == nil {
		return nil
	}
	_, others := s.split(os.Environ())
	return slices.Concat(others, s.compose.Env)
}

// endWithin is the time of a program from SIGTERM to SIGKILL. Tests change it.
var endWithin = 10 * time.Second

// run runs a program and what that starts, until ctx ends.
func run(ctx context.Context, env, argv []string, stdin []byte) ([]byte, error) {
	var out, said bytes.Buffer
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = env, bytes.NewReader(stdin), &out, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C is for rooftop, and nothing may ask at its terminal
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = endWithin
	err := cmd.Run()
	if ctx.Err() != nil && cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the remaining processes of its group
		return nil, fmt.Errorf("%s: %w", strings.Join(argv[:min(2, len(argv))], " "), context.Cause(ctx))
	}
	if err != nil {
		lines := strings.Split(strings.TrimSpace(said.String()), "\n")
		return nil, fmt.Errorf("%s: %s (%w)", strings.Join(argv[:min(2, len(argv))], " "), lines[len(lines)-1], err)
	}
	return out.Bytes(), nil
}

// call runs Compose for the project. A text stands in for the file that has the service's command.
func (s *service) call(ctx context.Context, text []byte, args ...string) ([]byte, error) {
	argv := slices.Clone(s.compose.Command)
	for _, file := range s.compose.Files {
		if target, err := filepath.EvalSymlinks(file); err == nil && target == s.compose.Path && text != nil {
			file = "-"
		}
		argv = append(argv, "--file", file)
	}
	if args[0] != "up" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, answerWithin, fmt.Errorf("it did not end within %v", answerWithin))
		defer cancel()
	}
	return s.run(ctx, s.environ(), append(argv, args...), text)
}

// up are the arguments that make the container again if its service has changed.
func (s *service) up() []string {
	return []string{"up", "--detach", "--no-deps", "--no-build", s.compose.Service}
}

// upCommand is what you type for that in the folder of the project.
func (s *service) upCommand() string { return upCommand(s.compose.Service) }

func upCommand(service string) string { return launch.Line("docker", "compose", "up", "-d", service) }

// aside is the second name of the file as it was before a change that is on trial.
func (s *service) aside() string {
	return filepath.Join(filepath.Dir(s.compose.Path), "."+filepath.Base(s.compose.Path)+keptSuffix)
}

// Notes returns where changes stand.
func (s *service) Notes() []string {
	return []string{fmt.Sprintf("Docker Compose makes the container %s: a change is made to command: of the service %s in %s, and stays there if it is kept", s.Name(), s.compose.Service, s.compose.Path)}
}

// Steps returns what Make would do.
func (s *service) Steps(change *manager.Change) []string {
	if len(change.All) == 0 {
		return []string{"put " + s.compose.Path + " back as it was", "run " + s.upCommand()}
	}
	target, err := s.target(change.All)
	if err != nil {
		return []string{"nothing: " + s.Launch().Hide(err.Error())}
	}
	return []string{fmt.Sprintf("edit command: of the service %s in %s, so that it starts %s", s.compose.Service, s.compose.Path, target.Command()), "run " + s.upCommand()}
}

// Make makes a change, or reverts it.
func (s *service) Make(ctx context.Context, change *manager.Change) error {
	s.started = ""
	// Compose finishes what it has begun, so that this waits for it.
	whole, cancel := bounded(ctx)
	defer cancel()
	var err error
	if len(change.All) == 0 {
		s.runs = nil
		err = s.putBack(change)
	} else if err = s.edit(ctx, change); err != nil {
		return &manager.UntouchedError{Err: err}
	}
	if err == nil {
		_, err = s.call(whole, nil, s.up()...)
	}
	var now *container
	if err == nil {
		now, err = s.inspect(whole, s.Name(), false)
	}
	if err != nil {
		return err
	}
	s.started = now.ID
	return nil
}

// edit writes the file with a change. If that fails, the file is as before.
func (s *service) edit(ctx context.Context, change *manager.Change) error {
	target, err := s.target(change.All)
	if err != nil {
		return err
	}
	if !slices.Equal(target.Env, s.kept.Env) {
		return fmt.Errorf("%s is set in the environment of the container: set it under environment: of the service %s in %s", engine.JoinChanges(change.All), s.compose.Service, s.compose.Path)
	}
	kept, err := s.keptFile()
	if err != nil {
		return err
	}
	if err := s.ours(kept.Data, nil); err != nil {
		return err
	}
	text, err := withChanges(kept.Data, s.compose.Service, s.compose.Entrypoint, change.All)
	if err == nil {
		err = s.check(ctx, kept.Data, text, target.Argv)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.compose.Path, err)
	}
	linked := os.Link(s.compose.Path, s.aside())
	if linked != nil && !errors.Is(linked, fs.ErrExist) {
		return linked
	}
	kept.Data, kept.Time = text, time.Time{}
	if err := kept.Replace(); err != nil {
		if linked == nil {
			err = errors.Join(err, os.Remove(s.aside())) // nothing is on trial
		}
		return err
	}
	s.wrote, s.runs = text, target
	return nil
}

// keptFile reads the file as it is kept: that before the change on trial, if there is one.
func (s *service) keptFile() (launcher.File, error) {
	kept, err := launcher.ReadFile(s.aside())
	if errors.Is(err, fs.ErrNotExist) {
		kept, err = launcher.ReadFile(s.compose.Path)
	}
	// Who writes the file decides what Compose does with rooftop's rights.
	kept.Path, kept.By = s.compose.Path, &launcher.Owner{}
	return kept, err
}

// ours returns an error if someone else changed the file: it is neither as it is kept, nor as rooftop wrote it,
// nor has it the changes of a rooftop that was killed.
func (s *service) ours(kept []byte, trial []engine.Change) error {
	now, err := launcher.ReadFile(s.compose.Path)
	if err != nil || bytes.Equal(now.Data, kept) || s.wrote != nil && bytes.Equal(now.Data, s.wrote) {
		return err
	}
	if text, err := withChanges(kept, s.compose.Service, s.compose.Entrypoint, trial); err == nil && bytes.Equal(now.Data, text) {
		return nil
	}
	return fmt.Errorf("someone changed %s meanwhile: set command: of the service %s there to what it is in %s, remove that and run %s", s.compose.Path, s.compose.Service, s.aside(), s.upCommand())
}

// check returns an error if a text of the file would start something else than a command line, or change more
// than the command of the service.
func (s *service) check(ctx context.Context, before, after []byte, argv []string) error {
	var read [2]map[string]any
	var commands [2]any
	for i, text := range [][]byte{before, after} {
		said, err := s.call(ctx, text, "config", "--format", "json")
		if err == nil {
			err = json.Unmarshal(said, &read[i])
		}
		if err != nil {
			return err
		}
		services, _ := read[i]["services"].(map[string]any)
		one, _ := services[s.compose.Service].(map[string]any)
		commands[i] = one["command"]
		delete(one, "command")
	}
	var words []string
	list, _ := commands[1].([]any)
	for _, word := range list {
		// Compose prints it so that it could read it again.
		words = append(words, strings.ReplaceAll(fmt.Sprint(word), "$$", "$"))
	}
	if !slices.Equal(slices.Concat(s.compose.Entrypoint, words), argv) || !reflect.DeepEqual(read[0], read[1]) {
		return fmt.Errorf("command: of the service %s cannot be edited so that nothing else changes", s.compose.Service)
	}
	return nil
}

// putBack gives the file as it was its name again.
func (s *service) putBack(change *manager.Change) error {
	kept, err := launcher.ReadFile(s.aside())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = s.ours(kept.Data, engine.InverseChanges(change.Changes))
	}
	if err == nil {
		err = os.Rename(s.aside(), s.compose.Path)
	}
	if err == nil {
		// Two names of one file are left as they are by a rename.
		if err = os.Remove(s.aside()); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	return err
}

// Keep removes the file before the latest change. Without one it does nothing.
func (s *service) Keep(ctx context.Context) error {
	if err := os.Remove(s.aside()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("keep the change in %s: %w", s.compose.Path, err)
	}
	if s.runs == nil {
		return nil
	}
	now, err := s.inspect(ctx, s.Name(), false)
	if err != nil {
		return err
	}
	s.was, s.kept, s.runs, s.wrote = now, s.runs, nil, nil
	return nil
}

// Busy returns the processes in which Compose still makes the container for a rooftop that was killed.
func (s *service) Busy() []int {
	processes, err := proc.Open("/proc")
	if err != nil {
		return nil
	}
	argv := slices.Clone(s.compose.Command)
	for _, file := range s.compose.Files {
		argv = append(argv, "--file", file)
	}
	var pids []int
	for _, one := range processes.Twins(append(argv, s.up()...)) {
		pids = append(pids, one.PID)
	}
	return pids
}

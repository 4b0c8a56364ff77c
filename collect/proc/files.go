package proc

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// maxModelConfigBytes is the largest config.json that is read. The largest real ones
// list a hundred thousand labels.
const maxModelConfigBytes = 8 << 20

// ModelConfig reads the config.json of a server's model from the model's directory,
// else from the Hugging Face cache that the server uses; at is its path as the server
// names it. Nothing is downloaded. The error wraps [ErrNoFile] or [ErrPermission].
func (s *Server) ModelConfig(model string) (text []byte, at string, err error) {
	if s.Launch != nil {
		if dir, _, ok := s.Launch.Value("hf_config_path"); ok {
			model = dir
		}
	}
	if model == "" {
		return nil, "", fmt.Errorf("%w: config.json of the server's model, which is unknown; give --model-config FILE", ErrNoFile)
	}
	var tried []string
	unreadable := false
	for _, candidate := range s.modelConfigs(model) {
		text, _, err := s.fs.serverFile(s.LaunchPID, s.Cwd, candidate, maxModelConfigBytes)
		if err == nil {
			return text, candidate, nil
		}
		unreadable = unreadable || denied(err)
		tried = append(tried, candidate)
	}
	if unreadable {
		return nil, "", fmt.Errorf("%w: config.json of %s belongs to user %d; run rooftop as that user or give --model-config FILE", ErrPermission, model, s.fs.uid(s.LaunchPID))
	}
	return nil, "", fmt.Errorf("%w: config.json of %s is at none of %s; give --model-config FILE", ErrNoFile, model, strings.Join(tried, ", "))
}

// modelConfigs lists the possible paths of a model's config.json, the likeliest first.
func (s *Server) modelConfigs(model string) []string {
	candidates := []string{path.Join(model, "config.json")}
	if strings.HasPrefix(model, "/") || strings.Count(model, "/") > 1 {
		return candidates
	}
	revision := "main"
	if s.Launch != nil {
		if r, _, ok := s.Launch.Value("revision"); ok {
			revision = r
		}
	}
	for _, hub := range s.hubs() {
		dir := path.Join(hub, "models--"+strings.ReplaceAll(model, "/", "--"))
		// The cache names a snapshot by its commit; refs map names to commits.
		if commit, _, err := s.fs.serverFile(s.LaunchPID, s.Cwd, path.Join(dir, "refs", revision), 256); err == nil {
			candidates = append(candidates, path.Join(dir, "snapshots", strings.TrimSpace(string(commit)), "config.json"))
		}
		candidates = append(candidates, path.Join(dir, "snapshots", revision, "config.json"))
	}
	return candidates
}

// hubs returns the Hugging Face cache that the server's environment selects, in the
// precedence of huggingface_hub: HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE,
// HF_HOME/hub, XDG_CACHE_HOME/huggingface/hub, ~/.cache/huggingface/hub.
func (s *Server) hubs() []string {
	switch {
	case s.Env["HF_HUB_CACHE"] != "":
		return []string{s.Env["HF_HUB_CACHE"]}
	case s.Env["HUGGINGFACE_HUB_CACHE"] != "":
		return []string{s.Env["HUGGINGFACE_HUB_CACHE"]}
	case s.Env["HF_HOME"] != "":
		return []string{path.Join(s.Env["HF_HOME"], "hub")}
	case s.Env["XDG_CACHE_HOME"] != "":
		return []string{path.Join(s.Env["XDG_CACHE_HOME"], "huggingface", "hub")}
	case s.Env["HOME"] != "":
		return []string{path.Join(s.Env["HOME"], ".cache", "huggingface", "hub")}
	}
	return []string{"/root/.cache/huggingface/hub"}
}

// serverFile reads a file of at most limit bytes by its name as a process sees it, and
// returns when it was last modified. Relative names start at cwd. In another mount
// namespace the name is resolved below the process's root and cannot escape it.
func (f processes) serverFile(pid int, cwd, name string, limit int64) (text []byte, changed time.Time, err error) {
	if strings.HasPrefix(name, "~/") {
		return nil, time.Time{}, fmt.Errorf("%s: a shell has not expanded it", name)
	}
	if !path.IsAbs(name) {
		if cwd == "" {
			return nil, time.Time{}, fmt.Errorf("%s: the working directory of process %d is unknown: %w", name, pid, fs.ErrPermission)
		}
		name = path.Join(cwd, name)
	}
	file, err := f.openAs(pid, name)
	if errors.Is(err, syscall.ENXIO) { // a FIFO or a socket
		err = fmt.Errorf("%s is not a regular file", name)
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, time.Time{}, err
	}
	if !info.Mode().IsRegular() {
		return nil, time.Time{}, fmt.Errorf("%s is not a regular file", name)
	}
	if info.Size() > limit {
		return nil, time.Time{}, fmt.Errorf("%s has %d bytes, more than the %d that are read", name, info.Size(), limit)
	}
	text, err = io.ReadAll(io.LimitReader(file, limit))
	return text, info.ModTime(), err
}

// openAs opens a file with the rights of a process's user, who may make the name point anywhere.
func (f processes) openAs(pid int, name string) (file *os.File, err error) {
	var user Surroundings
	if err := f.readStatus(pid, &user); err != nil {
		return nil, err
	}
	const flag = os.O_RDONLY | syscall.O_NONBLOCK | syscall.O_NOCTTY // opening a file that is not regular may block
	open := func() (*os.File, error) { return OpenFile(name, flag, 0) }
	if theirs, ours := f.namespace(pid, "mnt"), f.namespace(f.self, "mnt"); theirs == "" || theirs != ours {
		root, err := os.OpenRoot(f.path(pid, "root"))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, err
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		defer root.Close()
		open = func() (*os.File, error) {
			return root.OpenFile(filepath.FromSlash(strings.TrimPrefix(path.Clean(name), "/")), flag, 0)
		}
	}
	err = AsUser(user.UID, user.GID, user.Groups, func() error {
		file, err = open()
		return err
	})
	return file, err
}

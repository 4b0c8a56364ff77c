package wholefile

import (
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Owner is the user whom files are for, where this process is root's on somebody's
// behalf. A nil one is the user of the process.
type Owner struct{ UID, GID int }

// Behind is the user who ran this process, of an effective user ID, through sudo (sudo(8),
// SUDO_UID and SUDO_GID); nil where nobody did, or root.
func Behind(euid int, env func(string) (string, bool)) *Owner {
	uid, gid := number(env, "SUDO_UID"), number(env, "SUDO_GID")
	if euid != 0 || uid <= 0 || gid < 0 {
		return nil
	}
	return &Owner{UID: uid, GID: gid}
}

// number is the ID that a variable holds, -1 where it holds none. The largest one stands
// for "as it is" (chown(2)).
func number(env func(string) (string, bool), name string) int {
	text, _ := env(name)
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n == math.MaxUint32 {
		return -1
	}
	return int(n)
}

// Write is [Write] with a file that is given to the owner, as with [Owner.Take].
func (o *Owner) Write(path string, mode fs.FileMode, fill func(io.Writer) error) error {
	return written(path, mode, o, fill)
}

// Take gives the owner a file that this process made and that is to have the name target.
// Only the open file itself is touched, whatever its name has become, and only where the
// owner could have made it there: in a directory that they may write in, in place of no
// file of somebody else. Where the file system knows no owners it stays as it is.
func (o *Owner) Take(f *os.File, target string) {
	if o == nil {
		return
	}
	dir, err := os.OpenRoot(filepath.Dir(f.Name()))
	if err != nil {
		return
	}
	defer dir.Close()
	in, err := dir.Stat(".")
	if err != nil || !o.mayWrite(in) {
		return
	}
	// The directory that was looked at is the one that the file is in.
	there, err := dir.Lstat(filepath.Base(f.Name()))
	if err != nil {
		return
	}
	if made, err := f.Stat(); err != nil || !os.SameFile(made, there) {
		return
	}
	if old, err := dir.Lstat(filepath.Base(target)); err == nil && !os.SameFile(old, there) && !o.has(old) {
		return
	}
	_ = f.Chown(o.UID, o.GID)
}

// mayWrite says that the permissions of a directory let the owner make files in it.
func (o *Owner) mayWrite(dir fs.FileInfo) bool {
	stat, ok := dir.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	switch mode := dir.Mode().Perm(); {
	case int(stat.Uid) == o.UID:
		return mode&0o300 == 0o300
	case int(stat.Gid) == o.GID:
		return mode&0o030 == 0o030
	default:
		return mode&0o003 == 0o003
	}
}

// has says that a file is the owner's.
func (o *Owner) has(file fs.FileInfo) bool {
	stat, ok := file.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == o.UID
}

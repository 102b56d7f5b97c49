package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Write writes a value as JSON to a file of a task folder so that a reader sees all of it or nothing: to a second file,
// to the disk, and then under its name.
func Write(dir *os.Root, name string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	next := name + ".next"
	f, err := dir.OpenFile(next, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = dir.Rename(next, name)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// Read reads a JSON file of a task folder; a file that is not there is an error that is fs.ErrNotExist. Numbers in values of
// any type are json.Number.
func Read[T any](dir *os.Root, name string) (T, error) {
	var value T
	data, err := dir.ReadFile(name)
	if err != nil {
		return value, fmt.Errorf("read %s: %w", name, err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber() // see Whole
	if err := decoder.Decode(&value); err != nil {
		return value, fmt.Errorf("decode %s: %w", name, err)
	}
	return value, nil
}

// Boot is the ID of the machine's present boot; "-" where the system has none.
func Boot() string {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "-"
	}
	return strings.TrimSpace(string(data))
}

// StartTime reads a process' number and start time from /proc; pid may be "self". Boot is left to the caller.
func StartTime(pid string) (Process, error) {
	data, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return Process{}, err
	}
	text := string(data)
	// The second field is the program's name in parentheses and may hold anything; start time is the 22nd field.
	end := strings.LastIndexByte(text, ')')
	number, _, _ := strings.Cut(text, " ")
	if end < 0 {
		return Process{}, fmt.Errorf("unexpected /proc/%s/stat: %q", pid, text)
	}
	fields := strings.Fields(text[end+1:])
	if len(fields) < 20 {
		return Process{}, fmt.Errorf("unexpected /proc/%s/stat: %q", pid, text)
	}
	id, err := strconv.Atoi(number)
	if err != nil {
		return Process{}, fmt.Errorf("unexpected /proc/%s/stat: %w", pid, err)
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return Process{}, fmt.Errorf("unexpected /proc/%s/stat: %w", pid, err)
	}
	return Process{PID: id, Start: start}, nil
}

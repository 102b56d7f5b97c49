// Package pythonenv makes a Python environment for tests that need packages, once.
package pythonenv

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// With gives the bin folder of a Python environment that has the packages of a requirements file. It is made once
// for each content of that file, under a folder that stays.
func With(ctx context.Context, requirements, folder string) (string, error) {
	text, err := os.ReadFile(requirements)
	if err != nil {
		return "", fmt.Errorf("read the Python requirements: %w", err)
	}
	sum := sha256.Sum256(text)
	environment := filepath.Join(folder, hex.EncodeToString(sum[:6]))
	bin := filepath.Join(environment, "bin")
	ready := filepath.Join(environment, "ready")
	if _, err := os.Stat(ready); err == nil {
		return bin, nil
	}
	fmt.Printf("installing %s into %s, once\n", filepath.Base(requirements), environment)
	if err := os.RemoveAll(environment); err != nil {
		return "", fmt.Errorf("make a Python environment: %w", err)
	}
	for _, args := range [][]string{
		{"python3", "-m", "venv", environment},
		{filepath.Join(bin, "python3"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", requirements},
	} {
		if out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("make a Python environment (needs python3 with venv, and the package index): %v: %w\n%s", args, err, out)
		}
	}
	if err := os.WriteFile(ready, nil, 0o644); err != nil {
		return "", fmt.Errorf("make a Python environment: %w", err)
	}
	return bin, nil
}

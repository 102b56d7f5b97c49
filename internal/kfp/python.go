package kfp

import (
	"regexp"
	"strings"

	"github.com/sluice-ml/sluice/internal/program"
)

// The SDK compiles a Python component into a command that installs packages and then runs the rest of the command:
//
//	sh -c '… python3 -m pip install [options] 'pkg==1' 'other' && "$0" "$@"' sh -ec '<program>' '<source>' args…
//
// and with use_venv into one that makes a virtual environment first. A backend that can provide an environment with the
// packages runs the rest only.

var (
	pipInstall = regexp.MustCompile(`(?s)(?:python3|python|\$PYTHON)? ?-m pip install\s+`)
	runRest    = regexp.MustCompile(`(?s)"\$0"\s+"\$@"\s*$`)
)

// pythonEnvironment recognises such a command and gives what it installs, in order, options included ("--no-deps",
// "--index-url", "https://…"), and the command without the installation. It gives nothing where the command is of any
// other form, or installs nothing.
func pythonEnvironment(command []string) (requirements, rest []string) {
	if len(command) < 4 || !isShell(command[0]) || !strings.HasPrefix(command[1], "-") || !strings.HasSuffix(command[1], "c") {
		return nil, nil
	}
	script := command[2]
	if !runRest.MatchString(script) || !pipInstall.MatchString(script) {
		return nil, nil
	}
	seen := map[string]bool{}
	for _, at := range pipInstall.FindAllStringIndex(script, -1) {
		words, ok := shellWords(script[at[1]:])
		if !ok {
			return nil, nil
		}
		words = withoutNoise(words)
		if len(words) == 0 {
			continue
		}
		// "(install A || install A --user)" is one installation.
		key := strings.Join(words, "\x00")
		if seen[key] {
			continue
		}
		seen[key] = true
		if len(requirements) > 0 {
			// Each installation has options of its own: keep them apart.
			requirements = append(requirements, program.InstallSeparator)
		}
		requirements = append(requirements, words...)
	}
	if len(requirements) == 0 {
		return nil, nil
	}
	return requirements, command[3:]
}

func isShell(s string) bool {
	return s == "sh" || s == "bash" || strings.HasSuffix(s, "/sh") || strings.HasSuffix(s, "/bash")
}

// withoutNoise drops the options that say nothing about what is installed.
func withoutNoise(words []string) []string {
	var out []string
	for _, w := range words {
		switch w {
		case "--quiet", "-q", "--no-warn-script-location", "--user", "--upgrade-strategy", "--disable-pip-version-check":
			continue
		}
		out = append(out, w)
	}
	return out
}

// shellWords reads the words of a simple command up to what ends it: "&&", "||", ";", ")", "|" or the end. False is for
// anything that is more than words and quotes, such as a variable.
func shellWords(s string) ([]string, bool) {
	var words []string
	var word strings.Builder
	inWord := false
	flush := func() {
		if inWord {
			words = append(words, word.String())
		}
		word.Reset()
		inWord = false
	}
	for i := 0; i < len(s); i++ {
		switch ch := s[i]; ch {
		case ' ', '\t':
			flush()
		case '\n', '&', '|', ';', ')':
			flush()
			return words, true
		case '\\':
			if i+1 < len(s) {
				i++
				if s[i] != '\n' {
					word.WriteByte(s[i])
					inWord = true
				}
			}
		case '\'':
			end := strings.IndexByte(s[i+1:], '\'')
			if end < 0 {
				return nil, false
			}
			word.WriteString(s[i+1 : i+1+end])
			inWord = true
			i += end + 1
		case '"':
			j := i + 1
			for j < len(s) && s[j] != '"' {
				if s[j] == '\\' && j+1 < len(s) {
					j++
				} else if s[j] == '$' || s[j] == '`' {
					return nil, false
				}
				word.WriteByte(s[j])
				j++
			}
			if j >= len(s) {
				return nil, false
			}
			inWord = true
			i = j
		case '$', '`', '(', '<', '>':
			return nil, false
		default:
			word.WriteByte(ch)
			inWord = true
		}
	}
	flush()
	return words, true
}

package cli

import (
	"io"

	"github.com/charmbracelet/x/term"
)

// colour is an ANSI colour's parameters.
type colour string

const (
	red     colour = "31"
	green   colour = "32"
	yellow  colour = "33"
	blue    colour = "34"
	magenta colour = "35"
	cyan    colour = "36"
	grey    colour = "90"
	bold    colour = "1"
)

type colourMode bool

const (
	noColour   colourMode = false
	ansiColour colourMode = true
)

// paint colours a text for standard error.
func (a *app) paint(c colour, s string) string { return a.colour.paint(c, s) }

func (m colourMode) paint(c colour, s string) string {
	if m == noColour || s == "" || c == "" {
		return s
	}
	return "\x1b[" + string(c) + "m" + s + "\x1b[0m"
}

// stdoutColour is the mode for standard output, which may go elsewhere than standard error.
func (a *app) stdoutColour() colourMode {
	return colourMode(!a.noColour && a.Env("NO_COLOR") == "" && isTerminal(a.Stdout))
}

// isTerminal says whether a stream is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(f.Fd())
}

// terminalSize gives columns and lines; ok is false where it is no terminal or does not say.
func terminalSize(w io.Writer) (width, height int, ok bool) {
	f, isFile := w.(interface{ Fd() uintptr })
	if !isFile {
		return 0, 0, false
	}
	width, height, err := term.GetSize(f.Fd())
	return width, height, err == nil && width > 0 && height > 0
}

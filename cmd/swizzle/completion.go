package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help gives the examples of --help.
func (*completionCmd) Help() string {
	return `Examples:

    source <(swizzle completion bash)
    source <(swizzle completion zsh)
    swizzle completion fish >~/.config/fish/completions/swizzle.fish`
}

// Run prints the script.
func (c *completionCmd) Run(app *kong.Kong) error {
	script := map[string]func(*kong.Node) string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}[c.Shell]
	_, err := fmt.Fprint(os.Stdout, script(app.Model.Node))
	return err
}

// walk calls visit for a command and all below it, with the words that lead to each, every one after a space.
func walk(n *kong.Node, words string, visit func(words string, n *kong.Node)) {
	visit(words, n)
	for _, child := range n.Children {
		walk(child, words+" "+child.Name, visit)
	}
}

// commandNames returns the commands directly below n.
func commandNames(n *kong.Node) []string {
	var names []string
	for _, child := range n.Children {
		names = append(names, child.Name)
	}
	return names
}

// flagNames returns the flags of n as they are typed.
func flagNames(n *kong.Node) []string {
	var names []string
	for _, group := range n.AllFlags(true) {
		for _, flag := range group {
			names = append(names, "--"+flag.Name)
			if flag.Short != 0 {
				names = append(names, "-"+string(flag.Short))
			}
		}
	}
	return names
}

// enums returns the words that n's positional arguments are limited to.
func enums(n *kong.Node) []string {
	var words []string
	for _, arg := range n.Positional {
		words = append(words, arg.EnumSlice()...)
	}
	return words
}

// cases returns one line of a case statement for each command: what may follow its words, and its flags.
func cases(root *kong.Node) string {
	var b strings.Builder
	walk(root, "", func(words string, n *kong.Node) {
		follow := append(commandNames(n), enums(n)...)
		fmt.Fprintf(&b, "  '%s') words='%s' flags='%s' ;;\n", words, strings.Join(follow, " "), strings.Join(flagNames(n), " "))
	})
	return b.String()
}

// paths returns the words of every command as a pattern of a case statement.
func paths(root *kong.Node) string {
	var all []string
	walk(root, "", func(words string, _ *kong.Node) {
		if words != "" {
			all = append(all, "'"+words+"'")
		}
	})
	return strings.Join(all, "|")
}

func bashCompletion(root *kong.Node) string {
	return `_swizzle() {
  local current=${COMP_WORDS[COMP_CWORD]} command= word words= flags=
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$command $word" in ` + paths(root) + `) command="$command $word" ;; esac
  done
  case "$command" in
` + cases(root) + `  esac
  [[ $current == -* ]] && words=$flags
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _swizzle swizzle
`
}

func zshCompletion(root *kong.Node) string {
	return `#compdef swizzle
_swizzle() {
  local command= word words_= flags=
  for word in "${(@)words[2,CURRENT-1]}"; do
    case "$command $word" in ` + paths(root) + `) command="$command $word" ;; esac
  done
  case "$command" in
` + strings.ReplaceAll(cases(root), "words=", "words_=") + `  esac
  [[ $PREFIX == -* ]] && words_=$flags
  if [[ -n $words_ ]]; then compadd -- ${=words_}; else _files; fi
}
compdef _swizzle swizzle
`
}

func fishCompletion(root *kong.Node) string {
	var b strings.Builder
	walk(root, "", func(words string, n *kong.Node) {
		condition := "__fish_use_subcommand"
		if words != "" {
			condition = "__fish_seen_subcommand_from " + n.Name
		}
		for _, child := range n.Children {
			fmt.Fprintf(&b, "complete -c swizzle -f -n '%s' -a %s -d %s\n", condition, child.Name, fishQuote(child.Help))
		}
		for _, word := range enums(n) {
			fmt.Fprintf(&b, "complete -c swizzle -f -n '%s' -a %s\n", condition, word)
		}
		for _, flag := range n.Flags {
			fmt.Fprintf(&b, "complete -c swizzle -n '%s' -l %s", condition, flag.Name)
			if flag.Short != 0 {
				fmt.Fprintf(&b, " -s %c", flag.Short)
			}
			if !flag.IsBool() {
				b.WriteString(" -r")
			}
			fmt.Fprintf(&b, " -d %s\n", fishQuote(flag.Help))
		}
	})
	return b.String()
}

func fishQuote(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text) + "'"
}

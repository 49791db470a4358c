"""`bioptimus completion`: print the completion of this command line for a shell.

A script with which a shell completes verbs, flags, shipped configs, keys and their values at a press of Tab.

reads:  nothing
writes: the script to the terminal

examples:
  eval "$(bioptimus completion bash)"          in ~/.bashrc, or for this shell alone
  bioptimus completion zsh > ~/.zsh/_bioptimus
  bioptimus completion fish > ~/.config/fish/completions/bioptimus.fish
"""

from bioptimus_jax.cli.command import BEFORE, Verb, all_verbs, described, flag, keys_of
from bioptimus_jax.config.fields import walk
from bioptimus_jax.experiment.config import shipped
from bioptimus_jax.experiment.schema import Experiment

# The script has all words written out: to ask the program at every key press would import it each time. No library
# makes it, as none of them knows of --config.KEY=VALUE.
# Of `VERB:WORD`, the first pattern that fits says what WORD may become: after a = values, before it flags and keys.
BASH = """\
_bioptimus() {{
    local typed="${{COMP_LINE:0:COMP_POINT}}" verb="${{COMP_WORDS[1]}}" known="" before
    typed="${{typed##*[[:space:]]}}"
    [ "$COMP_CWORD" -le 1 ] && verb=""
    case "$verb:$typed" in
{cases}
    esac
    COMPREPLY=($(compgen -W "$known" -- "$typed"))
    [[ ${{#COMPREPLY[@]}} -eq 1 && "${{COMPREPLY[0]}}" == *= ]] && compopt -o nospace 2>/dev/null
    before="${{typed%"${{typed##*[=:]}}"}}"  # which bash has taken for another word
    COMPREPLY=("${{COMPREPLY[@]#"$before"}}")
}}
complete -o default -F _bioptimus bioptimus
"""
ZSH = """\
#compdef bioptimus
_bioptimus() {{
    local typed="${{words[CURRENT]}}" verb="${{words[2]}}" none=1
    local -a known
    (( CURRENT <= 2 )) && verb=""
    case "$verb:$typed" in
{cases}
    esac
    compadd -S "" -- ${{(M)known:#*=}} && none=0
    compadd -- ${{known:#*=}} && none=0
    (( none )) && {{ compset -P "*="; _files }}
}}
compdef _bioptimus bioptimus
"""
FISH = """\
function __bioptimus
    set -l words (commandline -opc)
    set -l verb $words[2]
    switch "$verb:"(commandline -ct)
{cases}
    end
end
complete -c bioptimus -a "(__bioptimus)"
"""
SHELLS = {
    'bash': (BASH, "        {}) known='{}' ;;"),
    'zsh': (ZSH, '        ({}) known=({}) ;;'),
    'fish': (FISH, "        case '{}'\n            string split -- ' ' '{}'"),
}
"""The script, and how it says what a pattern stands for."""


def script(shell: str) -> str:
    """The script of a shell."""
    verbs = all_verbs()
    cases = {':*': list(verbs)}
    for name, verb in verbs.items():
        flags, values = _words(verb)
        cases |= {f'{name}:*=*': values, f'{name}:*': flags}
    whole, one = SHELLS[shell]
    return whole.format(cases='\n'.join(one.format(at, ' '.join(known)) for at, known in cases.items()))


def _words(verb: Verb) -> tuple[list[str], list[str]]:
    """Flags and keys, with a = where they take a value; and each with every value that it may have."""
    flags, values = ['--help', *['--help-all'] * bool(verb.keys)], list[str]()
    for name, settings in verb.flags:
        choices = shipped() if name == '--config' else settings.get('choices', ())
        values += [f'{name}={choice}' for choice in choices] if name.startswith('-') else choices
        flags += [f'{name}{"" if settings.get("action") == "store_true" else "="}'] * name.startswith('-')
    for name, default, metadata in walk(Experiment()) if verb.every else keys_of(verb):
        choices = ('true', 'false') if isinstance(default, bool) else metadata.get('one_of', ())
        flags.append(f'--config.{name}=')
        # The scripts part words at blanks and quote them: values with either cannot stand there.
        values += [f'--config.{name}={one}' for one in choices if one and not set(str(one)) & set(' \'"')]
    return flags, values


VERB = Verb(
    *described(__doc__),
    (flag('shell', 'one of: %(choices)s', None, choices=tuple(SHELLS), metavar='SHELL'),),
    lambda command: print(script(command.options.shell), end=''),
    group=BEFORE,
)

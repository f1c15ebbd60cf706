# pip.sh      sourced by the scripts that fetch packages; it needs fail, $venv, a folder for a virtual
#             environment, and $wanted, what is fetched

# pip runs pip, if need be that of a virtual environment.
pip() {
  if python3 -m pip --version >/dev/null 2>&1; then
    python3 -m pip "$@"
    return
  fi
  if [ ! -x "$venv/bin/pip" ]; then
    command -v python3 >/dev/null || fail "python3 and pip are needed to fetch $wanted (Debian: apt-get install python3-pip)"
    python3 -m venv "$venv" >/dev/null 2>&1 || fail "pip is needed to fetch $wanted (Debian: apt-get install python3-pip)"
  fi
  "$venv/bin/pip" "$@"
}

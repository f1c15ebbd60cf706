package cpu

// defaultFloatControl is FPCR with round to nearest even, subnormals kept, NaNs propagated and all traps off.
const defaultFloatControl = 0

package cpu

// defaultFloatControl is MXCSR with round to nearest even, subnormals kept, all exceptions masked and no flag set.
const defaultFloatControl = 0x1F80

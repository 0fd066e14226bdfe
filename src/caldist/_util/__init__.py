"""Small tools that know nothing of calibration."""

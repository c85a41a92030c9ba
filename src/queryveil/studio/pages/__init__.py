"""The screens, one file each: functions of a session and a form that make views."""

DROP TABLE sandbox_security_events;
DROP TABLE tool_registrations;

-- The UTC day on which a payee was first claimed for. Null for payees from before this was kept: they count as seen on an earlier day.
ALTER TABLE lightning_facilitator_nodes ADD COLUMN first_day TEXT CHECK (length(first_day) = 10);

-- How many of a day's claims were for payees first seen on that day.
ALTER TABLE lightning_facilitator_days ADD COLUMN new_payee_claims INTEGER NOT NULL DEFAULT 0;

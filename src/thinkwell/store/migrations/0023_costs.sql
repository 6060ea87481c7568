-- What a turn has used of each model, with its cost: JSON by model.
ALTER TABLE turns ADD COLUMN spent TEXT;

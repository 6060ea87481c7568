"""Work for later: schedules, the queue, and the tasks that a class declares. All are jobs."""

// Imported first: zod would otherwise try out `new Function`, which the page's policy forbids.
import { config } from "zod/v4/core";

config({ jitless: true });

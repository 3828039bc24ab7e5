// The behaviours of the pages. Each works on markup that already makes sense without it.
import "./theme.js";
import "./copy.js";
import "./tabs.js";
import "./forms.js";
import "./drafts.js";
import "./confirm.js";
import "./diff.js";
import "./countdown.js";
import "./toasts.js";
import "./rows.js";
import "./keys.js";
import "./feed.js";
import "./steps.js";
import "./graph.js";
import "./notices.js";
import "./queue.js";
import "./live.js";

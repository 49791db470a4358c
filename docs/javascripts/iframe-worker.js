// The search of the site is a worker, and browsers start none for a page that was opened from a disk. There its script
// runs in a hidden frame instead. The plugin `offline` looks for this file's name before it would load another's shim.
if (location.protocol === 'file:') {
  window.Worker = class extends EventTarget {
    #waiting = [];
    #inside;

    constructor(script) {
      super();
      const frame = document.createElement('iframe');
      frame.hidden = true;
      document.body.append(frame);
      this.#inside = frame.contentWindow;
      const page = frame.contentDocument;
      page.open();
      // What the script posts is for whoever made the worker, not for its own window.
      this.#inside.postMessage = data => this.dispatchEvent(new MessageEvent('message', {data}));
      this.#inside.ready = () => {
        const waiting = this.#waiting;
        this.#waiting = null;
        waiting.forEach(data => this.postMessage(data));
      };
      page.write(`<script src="${encodeURI(decodeURI(script))}" onload="ready()"></` + 'script>');
      page.close();
    }

    postMessage(data) {
      if (this.#waiting) this.#waiting.push(data);
      else this.#inside.dispatchEvent(new MessageEvent('message', {data}));
    }
  };
}

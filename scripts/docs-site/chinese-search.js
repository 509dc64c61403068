// Search in Chinese. mdBook's index splits a text at spaces, of which Chinese has none, so it finds no word inside a
// sentence. A query with Chinese characters is answered by looking for its parts in the texts of the index instead.
(() => {
  if (!window.elasticlunr) return;
  const HAN = /\p{Script=Han}/u;
  const AROUND = 60;

  const count = (text, part) => text.toLowerCase().split(part).length - 1;

  // The text around the first place, because the page shows whole sentences of it.
  const shortened = (doc, part) => {
    const at = Math.max(0, doc.body.toLowerCase().indexOf(part) - AROUND);
    const end = at + part.length + 2 * AROUND;
    const body = (at > 0 ? '… ' : '') + doc.body.slice(at, end) + (end < doc.body.length ? ' …' : '');
    return { ...doc, body };
  };

  const searchTexts = (docs, query) => {
    const parts = query.toLowerCase().split(/\s+/).filter(Boolean);
    const found = [];
    for (const [ref, doc] of Object.entries(docs)) {
      const hits = parts.map(part => 10 * count(doc.title, part) + count(doc.body, part));
      if (hits.every(Boolean)) {
        const score = hits.reduce((sum, hit) => sum + hit, 0);
        found.push({ ref, score, doc: shortened(doc, parts[0]) });
      }
    }
    return found.sort((a, b) => b.score - a.score);
  };

  const load = window.elasticlunr.Index.load;
  window.elasticlunr.Index.load = stored => {
    const index = load.call(window.elasticlunr.Index, stored);
    const search = index.search.bind(index);
    index.search = (query, options) =>
      HAN.test(query) ? searchTexts(index.documentStore.docs, query) : search(query, options);
    return index;
  };
})();

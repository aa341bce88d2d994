/* Addresses within the page: a view, the object that it shows, and conditions, all in the fragment. They survive a
   reload and a login, and can be sent to others. */

const PREFIX = '#/';

const decoded = text => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

/* {view, name, query}; an address of an older release is only the name of an aggregate. */
export function parse(hash) {
  if (hash.length > 1 && !hash.startsWith(PREFIX)) return {view: 'aggregates', name: decoded(hash.slice(1)), query: {}};
  const [path, query = ''] = hash.slice(PREFIX.length).split('?');
  const [view, ...rest] = path.split('/');
  return {view, name: decoded(rest.join('/')), query: Object.fromEntries(new URLSearchParams(query))};
}

export function addressOf(view, name = '', query = {}) {
  const given = new URLSearchParams(Object.entries(query).filter(([, value]) => value)).toString();
  return `${PREFIX}${view}${name ? `/${encodeURIComponent(name)}` : ''}${given ? `?${given}` : ''}`;
}

// The plan that Python made, with what is looked up in it often. A node is known by its position in the plan.

let plan;

/** The plan of some data, with ways to look things up. */
function planOf(data) {
  const { nodes } = data;
  for (const each of nodes) each.parent ??= 0; // that of the model itself, which has none
  const node = (id) => nodes[id];
  const kids = (id) => nodes[id].contents?.children ?? [];
  const isBox = (id) => id !== null && id !== 0 && kids(id).length > 0 && nodes[id].kind !== "group";

  const paths = nodes.map(() => null);
  /** A node and what it is in, outermost first; without the model itself, and without groups, which are no boxes. */
  function path(id) {
    if (id === 0) return [];
    paths[id] ??= nodes[id].kind === "group" ? path(nodes[id].parent) : [...path(nodes[id].parent), id];
    return paths[id];
  }

  /** The producer of each input of a node, and the users of each output, among its siblings; inside of a node, the
   *  producer of each output, and the values of each input. */
  const feeding = nodes.map(() => []);
  const fed = nodes.map(() => []);
  const returned = nodes.map(() => []);
  const entered = nodes.map(() => []);
  nodes.forEach(({ contents }, id) => {
    for (const [index, value] of (contents?.values ?? []).entries()) {
      Object.assign(value, { owner: id, index });
      const source = value.from === undefined ? entered[id] : fed[value.from];
      (source[value.output] ??= []).push(value);
      for (const { to, port } of value.uses) {
        if (to === undefined) returned[id][port] = value;
        else feeding[to][port] = value;
      }
    }
  });

  /** The name of the line of a value to one of its uses. */
  const wireOf = ({ owner, index }, { to, port }) => [owner, index, to, port].join(".");

  /** The lines on which values come to a node from where they are computed, and those to all that uses its outputs. */
  function wiresAround(id) {
    const found = new Set();
    feeding[id].forEach((_, port) => addWiresTo(id, port, found));
    for (const value of fed[id].flat()) addWiresFrom(value, found);
    return found;
  }
  function addWiresTo(id, port, found) {
    if (feeding[id][port]) addWireTo(feeding[id][port], { to: id, port }, found);
  }
  function addWireTo(value, use, found) {
    found.add(wireOf(value, use));
    const { owner, from, output } = value;
    if (from === undefined) addWiresTo(owner, output, found);
    else if (returned[from][output]) addWireTo(returned[from][output], { port: output }, found);
  }
  function addWiresFrom(value, found) {
    for (const use of value?.uses ?? []) {
      found.add(wireOf(value, use));
      const further = use.to === undefined ? fed[value.owner][use.port] : entered[use.to][use.port];
      for (const each of further ?? []) addWiresFrom(each, found);
    }
  }

  /** The child that computes a value; for an input of the model's own node, the node that it enters. */
  function producer(value) {
    let { owner, from, output } = value;
    while (from === undefined) {
      const outer = feeding[owner][output];
      if (!outer) return owner;
      ({ owner, from, output } = outer);
    }
    while (nodes[from].kind === "group" || (nodes[from].kind === "period" && returned[from][output]?.from !== undefined)) {
      ({ from, output } = returned[from][output]);
    }
    return from;
  }

  /** The layer, block or input that a value comes from, and the functions and operations that it went through since. */
  function maker(value) {
    const through = [];
    let from = producer(value);
    while (isStep(from) && feeding[from].filter(Boolean).length === 1) {
      through.unshift(from);
      from = producer(feeding[from].find(Boolean));
    }
    return { from, through };
  }

  const isStep = (id) => ["fn", "op", "loop"].includes(nodes[id].kind);

  /** The siblings that use an output of a node, or what uses it outside if the node around returns it. */
  function users(id, output) {
    const found = new Set();
    for (const value of fed[id][output] ?? []) {
      for (const { to, port } of value.uses) {
        if (to === undefined) users(value.owner, port).forEach((user) => found.add(user));
        else if (nodes[to].kind !== "group") found.add(to);
        else usersInside(to, port).forEach((user) => found.add(user));
      }
    }
    return [...found];
  }
  function usersInside(group, port) {
    const inner = nodes[group].contents.values.filter((value) => value.from === undefined && value.output === port);
    return inner.flatMap(({ uses }) => uses.map(({ to }) => to)).filter((to) => to !== undefined);
  }

  const factors = nodes.map(() => null);
  /** How often a node is applied in the model: the polynomials to be multiplied. */
  function applied(id) {
    if (id === 0) return [];
    const { parent, times } = nodes[id];
    factors[id] ??= [...applied(parent), nodes[parent].rounds, times].filter((factor) => factor !== undefined);
    return factors[id];
  }

  const ids = nodes.map((_, id) => id);

  const byName = new Map(ids.map((id) => [nodes[id].name, id]));

  return {
    ties: [],
    roles: [],
    sources: {},
    sizes: Object.fromEntries((data.dimensions ?? []).map((name) => [name, [1, null]])),
    ...data,
    node,
    kids,
    isBox,
    path,
    wireOf,
    wiresAround,
    applied,
    maker,
    users,
    nameOf: (id) => nodes[id].name,
    /** The value that enters a node at one of its inputs. */
    feeding: (id, port) => feeding[id][port],
    /** The values that leave a node, by output. */
    leaving: (id) => fed[id],
    boxes: ids.filter(isBox),
    /** Periods and blocks that are open at first. */
    opened: new Set(data.opened ?? []),
    isInLayer: (id) => path(id).slice(0, -1).some((outer) => nodes[outer].kind === "layer"),
    /** The node around one: null at the outermost level. */
    around: (id) => path(id).at(-2) ?? null,
    named: (name) => byName.get(name) || null,
  };
}

/** A title that is clear without the picture: `+` is the sign of an operation. */
const titleOf = (id) => {
  const { form, title, type } = plan.node(id);
  return form === "circle" ? `${type} ${title}` : title;
};

// What viser draws is three.js's, which tells __THREE_DEVTOOLS__ of its scenes. Points and colours of shapes come through
// the studio's own socket (stream.py) and are put into the meshes that viser has made. Its two toon materials stand for what
// viser has none for: shading by the normal alone and, if it has three shades, drawn over all that is solid.
const pliantDrawing = (() => {
  "use strict";
  const MATCAP = `vec3 seen = normalize(normal);
    float lit = smoothstep(-0.9, 1.0, 0.7 * seen.y - 0.25 * seen.x + 0.65 * seen.z);
    outgoingLight = diffuseColor.rgb * mix(vec3(0.16, 0.17, 0.24), vec3(1.05, 1.0, 0.95), lit) * (1.0 - 0.45 * pow(1.0 - abs(seen.z), 3.0))
      + 0.3 * pow(max(dot(seen, normalize(vec3(-0.4, 0.6, 0.7))), 0.0), 24.0);
    #include <opaque_fragment>`;
  const MARK_TRIANGLES = 12; // as in stream.py
  const shapes = new Map(); // by serial number: vertices, color, points, colors
  const kept = new Map(); // points, by number
  const serials = new WeakMap(); // by the meshes' geometries
  let redraw = null, due = false;
  const drawn = []; // when the last shapes were drawn and the milliseconds that took here, for who measures it

  // What there is: [serial number, vertices, colour] by name
  function know(marks) {
    const there = new Map(Object.values(marks).map(([serial, ...mark]) => [serial, mark]));
    for (const serial of shapes.keys()) if (!there.has(serial)) shapes.delete(serial);
    for (const [serial, [vertices, color]] of there) if (!shapes.has(serial)) shapes.set(serial, { vertices, color, points: null, colors: null });
    soon();
  }

  function take(message) {
    const length = new DataView(message).getUint32(0, true), numbers = new Float32Array(message, 4 + length);
    const { serial, kind, number, gone } = JSON.parse(new TextDecoder().decode(new Uint8Array(message, 4, length)));
    for (const one of gone) kept.delete(one);
    if (numbers.length && number) kept.set(number, numbers);
    const shape = shapes.get(serial);
    if (!shape) return;
    if (kind === "points") shape.points = numbers.length ? numbers : kept.get(number);
    else shape.colors = numbers.length ? numbers : null;
    soon();
  }

  function forget() { // without the socket viser moves shapes, and another one sends all that is shown anew
    kept.clear();
    shapes.clear();
  }

  function soon() { // viser draws on demand; what it does not draw meanwhile is drawn here
    if (due) return;
    due = true;
    requestAnimationFrame(() => setTimeout(() => { if (due && redraw) redraw(); due = false; }));
  }

  // The last triangles of a mesh are points, so that no wire is seen of them: the digits of its serial number.
  function serialOf({ index, attributes: { position } }) {
    if (!index || !position || index.count < 3 * MARK_TRIANGLES) return 0;
    let serial = 0;
    for (let k = index.count - 3; k >= index.count - 3 * MARK_TRIANGLES; k -= 3) {
      const [a, b, c] = [index.getX(k), index.getX(k + 1), index.getX(k + 2)];
      if (a !== b || b !== c) return 0;
      serial = serial * position.count + a;
    }
    return serial;
  }

  function shapeOf({ geometry }) {
    if (!serials.has(geometry)) serials.set(geometry, serialOf(geometry));
    const shape = shapes.get(serials.get(geometry));
    return shape && shape.vertices === geometry.attributes.position.count ? shape : null;
  }

  function move(geometry, points) {
    const position = geometry.attributes.position;
    if (position.array === points) return;
    const began = performance.now();
    position.array = points;
    position.needsUpdate = true;
    const normal = geometry.attributes.normal, n = normal.array, t = geometry.index.array;
    n.fill(0);
    for (let k = 0; k < t.length; k += 3) {
      const a = 3 * t[k], b = 3 * t[k + 1], c = 3 * t[k + 2];
      const ux = points[b] - points[a], uy = points[b + 1] - points[a + 1], uz = points[b + 2] - points[a + 2];
      const vx = points[c] - points[a], vy = points[c + 1] - points[a + 1], vz = points[c + 2] - points[a + 2];
      const x = uy * vz - uz * vy, y = uz * vx - ux * vz, z = ux * vy - uy * vx;
      n[a] += x; n[a + 1] += y; n[a + 2] += z;
      n[b] += x; n[b + 1] += y; n[b + 2] += z;
      n[c] += x; n[c + 1] += y; n[c + 2] += z;
    }
    let farthest = 0;
    for (let k = 0; k < n.length; k += 3) {
      const long = 1 / (Math.hypot(n[k], n[k + 1], n[k + 2]) || 1);
      n[k] *= long; n[k + 1] *= long; n[k + 2] *= long;
      farthest = Math.max(farthest, points[k] ** 2 + points[k + 1] ** 2 + points[k + 2] ** 2);
    }
    normal.needsUpdate = true;
    geometry.boundingBox = null;
    if (!geometry.boundingSphere) geometry.computeBoundingSphere();
    geometry.boundingSphere.center.set(0, 0, 0);
    geometry.boundingSphere.radius = Math.sqrt(farthest);
    drawn.push([began, performance.now() - began]);
    if (drawn.length > 1000) drawn.shift();
  }

  function paint({ geometry, material }, shape) {
    const { colors } = shape, color = geometry.attributes.color;
    if (colors && !color) geometry.setAttribute("color", new geometry.attributes.position.constructor(colors, 3));
    else if (colors && color.array !== colors) { color.array = colors; color.needsUpdate = true; }
    else if (!colors && color) geometry.deleteAttribute("color");
    if (material.vertexColors === !!colors) return;
    material.vertexColors = !!colors;
    material.color.setHex(colors ? 0xffffff : shape.color);
    material.needsUpdate = true;
  }

  function dress(scene) {
    let cleared = false;
    const over = (node) => {
      const own = node.onBeforeRender;
      node.userData.pliant = true;
      node.renderOrder = 300; // below handles and labels
      node.onBeforeRender = function (renderer, ...given) {
        if (!cleared) renderer.clearDepth();
        cleared = true;
        own.call(this, renderer, ...given);
      };
    };
    scene.onBeforeRender = (renderer, _, camera) => {
      cleared = false;
      if (renderer.getRenderTarget() === null) { due = false; redraw = () => renderer.render(scene, camera); }
      scene.traverse((node) => {
        const material = node.material;
        if (!node.isMesh || !material) return;
        const shape = shapeOf(node);
        if (shape) {
          if (shape.points) move(node.geometry, shape.points);
          paint(node, shape);
        }
        const shades = material.gradientMap && material.gradientMap.image.width;
        if (!shades || material.userData.pliant) return;
        material.userData.pliant = true;
        material.onBeforeCompile = (shader) => { shader.fragmentShader = shader.fragmentShader.replace("#include <opaque_fragment>", MATCAP); };
        material.customProgramCacheKey = () => "pliant matcap";
        if (shades === 3) {
          material.transparent = true;
          if (!node.userData.pliant) over(node);
        }
        material.needsUpdate = true;
      });
    };
  }
  window.__THREE_DEVTOOLS__ = window.__THREE_DEVTOOLS__ || new EventTarget();
  window.__THREE_DEVTOOLS__.addEventListener("observe", (event) => { if (event.detail.isScene) dress(event.detail); });
  return { know, take, forget, drawn };
})();

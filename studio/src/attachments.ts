// Files on their way into a message, as data addresses. Photos that are too big are made smaller;
// what cannot be made smaller is refused with a reason.
import type { FileUIPart } from "ai";

/** A stored message holds at most 1.8 MB; this leaves room for the text. */
export const MAX_TOTAL = 1_600_000;
const LONGEST_SIDES = [1568, 1024, 640];
export const ACCEPTED = "image/*,application/pdf,text/*";

export async function attach(files: readonly File[], present: readonly FileUIPart[]): Promise<FileUIPart[]> {
  const parts = [...present];
  for (const file of files) {
    const part = await read(file);
    if (total([...parts, part]) > MAX_TOTAL) throw new Error(tooBig(file));
    parts.push(part);
  }
  return parts;
}

async function read(file: File): Promise<FileUIPart> {
  const type = file.type || "application/octet-stream";
  if (!/^(image\/|text\/|application\/pdf$)/.test(type)) {
    throw new Error(`${file.name} is not an image, a PDF or a text.`);
  }
  const shrinkable = /^image\/(jpeg|png|webp|avif|bmp)$/.test(type);
  if (!shrinkable && file.size > MAX_TOTAL) throw new Error(tooBig(file));
  const url = await dataAddress(file);
  if (shrinkable && url.length > MAX_TOTAL / 2) {
    return { type: "file", mediaType: "image/jpeg", filename: file.name, url: await shrink(file) };
  }
  return { type: "file", mediaType: type, filename: file.name, url };
}

function tooBig(file: File): string {
  const megabytes = (file.size / 1_000_000).toFixed(1);
  return `${file.name} (${megabytes} MB) is too big: a message holds about ${((MAX_TOTAL * 0.75) / 1_000_000).toFixed(1)} MB of files.`;
}

function total(parts: readonly FileUIPart[]): number {
  return parts.reduce((sum, part) => sum + part.url.length, 0);
}

function dataAddress(file: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result as string);
    reader.onerror = () => reject(new Error("The file cannot be read."));
    reader.readAsDataURL(file);
  });
}

async function shrink(file: File): Promise<string> {
  const picture = await createImageBitmap(file).catch(() => {
    throw new Error(`${file.name} cannot be read as an image.`);
  });
  let url = "";
  for (const longest of LONGEST_SIDES) {
    url = drawn(picture, Math.min(1, longest / Math.max(picture.width, picture.height)));
    if (url.length <= MAX_TOTAL / 2) break;
  }
  picture.close();
  return url;
}

function drawn(picture: ImageBitmap, scale: number): string {
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(picture.width * scale);
  canvas.height = Math.round(picture.height * scale);
  const pen = canvas.getContext("2d");
  if (!pen) throw new Error("This browser cannot make the image smaller.");
  pen.fillStyle = "white";
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.drawImage(picture, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL("image/jpeg", 0.82);
}
